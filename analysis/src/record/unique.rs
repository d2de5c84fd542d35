//! JSON without duplicate keys: with duplicates, different readers would silently take different values.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// A value in which every object has each key only once.
pub(super) struct Unique(pub(super) Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Whole).map(Self)
    }
}

struct Whole;

/// Scalars, converted without change.
macro_rules! scalars {
    ($($name:ident: $type:ty),*) => {
        $(fn $name<E: Error>(self, value: $type) -> Result<Value, E> {
            Ok(value.into())
        })*
    };
}

impl<'de> Visitor<'de> for Whole {
    type Value = Value;

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str, visit_string: String);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(element)) = elements.next_element()? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(Error::custom(format!("the key `{key}` appears twice in one object")));
            }
            let Unique(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_and_a_key_that_stands_twice_is_named_with_its_place() {
        for text in [r#"{"a":[null,true,-1,18446744073709551615,0.5,"x\n"],"b":{"a":{}}}"#, "7", "\"\"", "[]", "-0.0"] {
            let plain: Value = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::from_str::<Unique>(text).unwrap().0, plain, "{text}");
        }
        let error = serde_json::from_str::<Unique>("[{\"a\":{\"k\":1,\n\"\\u006b\":1}}]").err().unwrap().to_string();
        assert_eq!(error, "the key `k` appears twice in one object at line 2 column 8");
    }
}
