//! Makes a Rust program a device for mxprobe. One file, standard library only: copy it.
//!
//! ```no_run
//! let device = Device::new("my unit").operation("gemm.m*n*k*.f32.f32.f32.f32", |tile: &Tile| {
//!     let (a, b, c) = (tile.a::<f32>(), tile.b::<f32>(), tile.c::<f32>()); // m×k, k×n, m×n, row-major
//!     Ok(my_product(tile.m, tile.n, tile.k, &a, &b, &c)) // m×n
//! });
//! serve(&[device])
//! ```
//!
//! An operation is named FAMILY.mMnNkK.D.A.B.C, formats last; `*` leaves a size to the user (`--shape MxNxK`). Elements
//! of fewer than 8 bits take one byte whose high bits are zero. An `Err` or a panic becomes the answer `failed`.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
};

const PROTOCOL: &str = "mxprobe-device/1";

/// A number of the host, read and written as little-endian bytes. Formats without one, such as bf16, are read as `u16`
/// or `u8`.
pub trait Element: Copy {
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut Vec<u8>);
}

macro_rules! elements {
    ($($number:ty)*) => {$(impl Element for $number {
        fn read(bytes: &[u8]) -> Self {
            Self::from_le_bytes(bytes.try_into().expect("an element of this type's size"))
        }
        fn write(self, bytes: &mut Vec<u8>) {
            bytes.extend(self.to_le_bytes());
        }
    })*};
}
elements!(f64 f32 i32 u32 i16 u16 i8 u8);

/// The operands of one multiply-add. All matrices are row-major.
#[allow(dead_code, reason = "not every program reads m")]
pub struct Tile<'t> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    operands: Vec<&'t [u8]>,
}

#[allow(dead_code, reason = "not every program has scales")]
impl Tile<'_> {
    /// A, m×k. `T` must have the size of the format.
    pub fn a<T: Element>(&self) -> Vec<T> {
        self.operand(0)
    }

    /// B, k×n.
    pub fn b<T: Element>(&self) -> Vec<T> {
        self.operand(1)
    }

    /// C, m×n.
    pub fn c<T: Element>(&self) -> Vec<T> {
        self.operand(2)
    }

    /// The scales of A, m×⌈k/block⌉, and of B, ⌈k/block⌉×n, if the operation's id names block scales.
    pub fn scales<T: Element>(&self) -> (Vec<T>, Vec<T>) {
        (self.operand(3), self.operand(4))
    }

    fn operand<T: Element>(&self, at: usize) -> Vec<T> {
        self.operands[at].chunks(size_of::<T>()).map(T::read).collect()
    }
}

/// An operation's id: its words, and m, n and k, where 0 means free.
struct Id {
    words: Vec<String>,
    sizes: [usize; 3],
    block: Option<(usize, usize)>,
}

impl Id {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an operation id: the form is FAMILY.mMnNkK.D.A.B.C");
        let words: Vec<String> = text.split('.').map(str::to_owned).collect();
        let (_, shape) = (words.len() >= 6).then(|| words[1].split_at_checked(1)).flatten().ok_or_else(wrong)?;
        let (m, rest) = shape.split_once('n').filter(|_| words[1].starts_with('m')).ok_or_else(wrong)?;
        let (n, k) = rest.split_once('k').ok_or_else(wrong)?;
        let size = |word: &str| if word == "*" { Some(0) } else { word.parse().ok().filter(|size| *size > 0) };
        let (Some(m), Some(n), Some(k)) = (size(m), size(n), size(k)) else { return Err(wrong()) };
        if let Some(unknown) = words[2..6].iter().find(|word| bytes_of(word).is_none()) {
            return Err(format!("`{text}`: unknown format `{unknown}`"));
        }
        let at =
            words.iter().position(|word| word.strip_prefix("block").is_some_and(|word| word.parse::<u32>().is_ok()));
        let block = at.map(|at| Some((words[at][5..].parse().ok()?, bytes_of(words.get(at + 1)?)?)));
        Ok(Self { sizes: [m, n, k], block: block.map(|block| block.ok_or_else(wrong)).transpose()?, words })
    }

    /// Whether a fixed id is this one, possibly with its free sizes fixed.
    fn matches(&self, fixed: &Self) -> bool {
        let is_same = self.sizes.iter().zip(&fixed.sizes).all(|(own, size)| *size > 0 && (*own == 0 || own == size));
        is_same && self.words[0] == fixed.words[0] && self.words[2..] == fixed.words[2..]
    }

    /// The bytes of each operand of a tile, and of its D.
    fn bytes(&self) -> (Vec<usize>, usize) {
        let [m, n, k] = self.sizes;
        let of = |word: usize| bytes_of(&self.words[word]).expect("it was read");
        let mut operands = vec![m * k * of(3), k * n * of(4), m * n * of(5)];
        if let Some((block, size)) = self.block {
            operands.extend([m * k.div_ceil(block) * size, k.div_ceil(block) * n * size]);
        }
        (operands, m * n * of(2))
    }
}

/// Bytes of an element.
fn bytes_of(format: &str) -> Option<usize> {
    match format {
        "f64" => Some(8),
        "f32" | "tf32" | "xf32" | "s32" | "u32" => Some(4),
        "f16" | "bf16" | "s16" => Some(2),
        "e4m3" | "e5m2" | "e4m3fnuz" | "e5m2fnuz" | "e3m2" | "e2m3" | "e2m1" => Some(1),
        "s8" | "u8" | "s4" | "u4" | "ue8m0" | "ue4m3" => Some(1),
        _ => None,
    }
}

type Compute = Box<dyn Fn(&Tile) -> Result<Vec<u8>, String>>;

/// A device: a display name and operations.
pub struct Device {
    name: String,
    fingerprint: Option<String>,
    operations: Vec<(String, Id, Compute)>,
}

#[allow(dead_code, reason = "not every program has a fingerprint")]
impl Device {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), fingerprint: None, operations: Vec::new() }
    }

    /// Sets a name for programs: identical for all devices of the same kind.
    pub fn fingerprint(mut self, name: &str) -> Self {
        self.fingerprint = Some(name.to_owned());
        self
    }

    /// Adds an operation; `compute` returns the m·n elements of D.
    ///
    /// # Panics
    /// If the id is invalid.
    pub fn operation<T: Element>(
        mut self,
        id: &str,
        compute: impl Fn(&Tile) -> Result<Vec<T>, String> + 'static,
    ) -> Self {
        let bytes = move |tile: &Tile| {
            let mut bytes = Vec::new();
            compute(tile)?.into_iter().for_each(|element| element.write(&mut bytes));
            Ok(bytes)
        };
        let parsed = Id::parse(id).unwrap_or_else(|error| panic!("{error}"));
        self.operations.push((id.to_owned(), parsed, Box::new(bytes)));
        self
    }

    fn described(&self, selector: usize) -> String {
        let ids: Vec<String> = self.operations.iter().map(|(id, ..)| quoted(id)).collect();
        let fingerprint = self.fingerprint.as_ref().map(|name| format!(r#","fingerprint":{}"#, quoted(name)));
        let (name, fingerprint, ids) = (quoted(&self.name), fingerprint.unwrap_or_default(), ids.join(","));
        format!(r#"{{"selector":"{selector}","name":{name}{fingerprint},"kind":"software","operations":[{ids}]}}"#)
    }

    fn execute(&self, id: &str, tiles: usize, parts: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let fixed = Id::parse(id)?;
        let found = self.operations.iter().find(|(_, own, _)| own.matches(&fixed));
        let (_, _, compute) = found.ok_or_else(|| format!("unknown operation {id}"))?;
        let (sizes, result) = fixed.bytes();
        if parts.len() != sizes.len() || parts.iter().zip(&sizes).any(|(part, size)| part.len() != tiles * size) {
            return Err(format!("the operands sent do not have the sizes of {tiles} tiles of {id}"));
        }
        let mut d = Vec::with_capacity(tiles * result);
        for tile in 0..tiles {
            let operands = parts.iter().zip(&sizes).map(|(part, size)| &part[tile * size..(tile + 1) * size]).collect();
            let [m, n, k] = fixed.sizes;
            let one = compute(&Tile { m, n, k, operands })?;
            if one.len() != result {
                return Err(format!("the result has {} bytes, but D has {result}", one.len()));
            }
            d.extend(one);
        }
        Ok(d)
    }
}

/// Answers mxprobe's requests about these devices until standard input closes. On Unix, output printed to standard
/// output from now on goes to standard error.
///
/// # Errors
/// If an answer cannot be written.
pub fn serve(devices: &[Device]) -> io::Result<()> {
    let mut answers = own_output()?;
    let mut requests = BufReader::new(io::stdin());
    let mut line = Vec::new();
    while requests.read_until(b'\n', &mut line)? > 0 {
        let (answer, part) = match answer(devices, &line, &mut requests) {
            Ok((answer, part)) => (answer, part),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => (format!(r#"{{"answer":"failed","message":{}}}"#, quoted(&error.to_string())), Vec::new()),
        };
        answers.write_all(format!("{answer}\n").as_bytes())?;
        answers.write_all(&part)?;
        answers.flush()?;
        line.clear();
    }
    Ok(())
}

fn answer(devices: &[Device], line: &[u8], requests: &mut impl Read) -> io::Result<(String, Vec<u8>)> {
    let text = String::from_utf8_lossy(line);
    let wrong = || io::Error::other(format!("`{}` is not a request of {PROTOCOL}", text.trim_end()));
    let request = Json { text: text.trim_end(), at: 0 }.object().ok_or_else(wrong)?;
    let word = |key: &str| match request.get(key) {
        Some(Value::Text(word)) => word.as_str(),
        _ => "",
    };
    let mut parts = Vec::new();
    if let Some(lengths) = request.get("bytes") {
        let Value::List(lengths) = lengths else { return Err(wrong()) };
        for length in lengths {
            let Value::Number(length) = length else { return Err(wrong()) };
            let mut part = vec![0; *length];
            requests.read_exact(&mut part)?;
            parts.push(part);
        }
    }
    let described: Vec<String> = devices.iter().enumerate().map(|(at, device)| device.described(at)).collect();
    let at: Option<usize> = word("device").parse().ok().filter(|at| *at < devices.len());
    match (word("ask"), at) {
        ("discover", _) if word("protocol") != PROTOCOL => {
            Err(io::Error::other(format!("the protocol `{}` is not {PROTOCOL}", word("protocol"))))
        }
        ("discover", _) => {
            let devices = described.join(",");
            Ok((format!(r#"{{"answer":"found","protocol":"{PROTOCOL}","devices":[{devices}]}}"#), Vec::new()))
        }
        (_, None) => Err(io::Error::other(format!("unknown device `{}`", word("device")))),
        ("open", Some(at)) => Ok((format!(r#"{{"answer":"opened","device":{}}}"#, described[at]), Vec::new())),
        ("execute", Some(at)) => {
            let Some(Value::Number(tiles)) = request.get("tiles") else { return Err(wrong()) };
            let compute = AssertUnwindSafe(|| devices[at].execute(word("operation"), *tiles, &parts));
            let d = catch_unwind(compute).unwrap_or_else(|_| Err("the program panicked".to_owned()));
            let d = d.map_err(io::Error::other)?;
            Ok((format!(r#"{{"answer":"done","bytes":[{}]}}"#, d.len()), d))
        }
        (other, _) => Err(io::Error::other(format!("this program does not answer `{other}`"))),
    }
}

#[cfg(unix)]
fn own_output() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    unsafe extern "C" {
        fn dup2(from: i32, to: i32) -> i32;
    }
    let own = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both descriptors are open, and the second one, standard output, has no owner.
    if unsafe { dup2(2, 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(own.into())
}

#[cfg(not(unix))]
fn own_output() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Quotes a text as JSON; control characters become spaces.
fn quoted(text: &str) -> String {
    let letter = |letter: char| match letter {
        '"' | '\\' => format!("\\{letter}"),
        letter if letter.is_control() => " ".to_owned(),
        letter => letter.to_string(),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

/// A JSON value, as far as requests use them.
enum Value {
    Text(String),
    Number(usize),
    List(Vec<Value>),
    Other,
}

struct Json<'t> {
    text: &'t str,
    at: usize,
}

impl Json<'_> {
    /// Parses the whole text as an object and returns its members.
    fn object(mut self) -> Option<BTreeMap<String, Value>> {
        let members = self.members(0)?;
        self.next().is_none().then_some(members)
    }

    /// The next character that is not a space.
    fn next(&mut self) -> Option<u8> {
        self.at += self.text[self.at..].find(|letter| letter != ' ').unwrap_or(self.text.len() - self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, letter: u8) -> Option<()> {
        (self.next() == Some(letter)).then(|| self.at += 1)
    }

    fn members(&mut self, depth: usize) -> Option<BTreeMap<String, Value>> {
        let mut members = BTreeMap::new();
        self.take(b'{')?;
        if self.next()? != b'}' {
            loop {
                let key = self.string()?;
                self.take(b':')?;
                members.insert(key, self.value(depth)?);
                if self.take(b',').is_none() {
                    break;
                }
            }
        }
        self.take(b'}')?;
        Some(members)
    }

    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut word = String::new();
        let mut letters = self.text[self.at..].char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at += at + 1;
                    return Some(word);
                }
                // No name in the protocol needs a character that JSON writes as \u.
                '\\' => match letters.next()?.1 {
                    escaped @ ('"' | '\\' | '/') => word.push(escaped),
                    _ => word.push('?'),
                },
                letter if letter.is_control() => return None,
                letter => word.push(letter),
            }
        }
        None
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.next()? {
            b'"' => self.string().map(Value::Text),
            b'{' if depth < 64 => self.members(depth + 1).map(|_| Value::Other),
            b'[' if depth < 64 => {
                let mut list = Vec::new();
                self.take(b'[')?;
                if self.next()? != b']' {
                    loop {
                        list.push(self.value(depth + 1)?);
                        if self.take(b',').is_none() {
                            break;
                        }
                    }
                }
                self.take(b']')?;
                Some(Value::List(list))
            }
            b'{' | b'[' => None,
            _ => {
                let rest = &self.text[self.at..];
                let token = &rest[..rest.find([',', ']', '}', ' ']).unwrap_or(rest.len())];
                self.at += token.len();
                let is_known = ["true", "false", "null"].contains(&token) || token.parse::<f64>().is_ok();
                is_known.then(|| token.parse().map_or(Value::Other, Value::Number))
            }
        }
    }
}
