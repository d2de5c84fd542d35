//! Splits PTX text into statements with their line numbers, without interpreting them.

use super::Fault;

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// `.version 8.7` as 87, and its line.
    pub version: Option<(u32, usize)>,
    /// `.target`, and its line.
    pub target: Option<(String, usize)>,
    /// Its kernels.
    pub entries: Vec<EntryText>,
}

/// A kernel.
#[derive(Debug, Default)]
pub(crate) struct EntryText {
    pub name: String,
    /// The words of each `.param`.
    pub parameters: Vec<Declaration>,
    /// `.maxntid`, `.reqntid` and the like, with their numbers.
    pub limits: Vec<Declaration>,
    pub body: Vec<Item>,
}

/// A declaration without its leading dot and its semicolon, such as `reg .b32 %a<4>`, and its line.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub line: usize,
    pub text: String,
}

#[derive(Debug)]
pub(crate) enum Item {
    Declaration(Declaration),
    Label(String, usize),
    Statement(Statement),
}

/// `@%p add.u32 %r1, %r2, 3`.
#[derive(Debug)]
pub(crate) struct Statement {
    pub line: usize,
    /// The predicate, and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// The words between the dots: `["add", "u32"]`.
    pub opcode: Vec<String>,
    pub operands: Vec<Operand>,
}

impl Statement {
    pub(crate) fn fault(&self, text: impl std::fmt::Display) -> Fault {
        Fault::new(self.line, text)
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.opcode.iter().any(|one| one == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Word(String),
    Vector(Vec<String>),
    Address { base: String, offset: i64 },
}

/// Reads a module.
pub(crate) fn read(source: &str) -> Result<Text, Fault> {
    let source = without_comments(source)?;
    let mut reader = Reader { rest: &source, line: 1 };
    let mut text = Text::default();
    loop {
        reader.skip_space();
        if reader.rest.is_empty() {
            return Ok(text);
        }
        let line = reader.line;
        let word = reader.word();
        match word {
            ".version" => text.version = Some((version(reader.until_line_end(), line)?, line)),
            ".target" => {
                let name = reader.until_line_end().split(',').next().unwrap_or_default().trim();
                text.target = Some((name.to_owned(), line));
            }
            ".address_size" => {
                let size = reader.until_line_end().trim();
                if size != "64" {
                    return Err(Fault::new(line, format!("address size `{size}` is not 64")));
                }
            }
            ".file" | ".section" => {
                reader.until_line_end();
            }
            ".visible" | ".weak" => {}
            ".entry" => text.entries.push(entry(&mut reader, line)?),
            _ => return Err(Fault::new(line, format!("`{}` is not understood here", shown(word, &reader)))),
        }
    }
}

fn shown(word: &str, reader: &Reader<'_>) -> String {
    if word.is_empty() { reader.rest.chars().take(1).collect() } else { word.to_owned() }
}

fn version(text: &str, line: usize) -> Result<u32, Fault> {
    let parsed = text.trim().split_once('.').and_then(|(major, minor)| {
        Some(major.parse::<u32>().ok()? * 10 + minor.parse::<u32>().ok().filter(|minor| *minor < 10)?)
    });
    parsed.ok_or_else(|| Fault::new(line, format!("`{}` is not a version", text.trim())))
}

fn entry(reader: &mut Reader<'_>, line: usize) -> Result<EntryText, Fault> {
    reader.skip_space();
    let name = reader.word().to_owned();
    if name.is_empty() {
        return Err(Fault::new(line, "an entry without a name"));
    }
    let mut entry = EntryText { name, ..EntryText::default() };
    reader.skip_space();
    if reader.take('(') {
        let at = reader.line;
        let list = reader.until(')').ok_or_else(|| Fault::new(at, "`(` without `)`"))?;
        let mut line = at;
        for parameter in list.split(',') {
            let leading = parameter.len() - parameter.trim_start().len();
            line += parameter[..leading].matches('\n').count();
            if !parameter.trim().is_empty() {
                entry.parameters.push(Declaration { line, text: parameter.trim().to_owned() });
            }
            line += parameter[leading..].matches('\n').count();
        }
    }
    reader.skip_space();
    let line = reader.line;
    let limits = reader.until('{').ok_or_else(|| Fault::new(line, "an entry without a body"))?;
    for limit in limits.split('.').map(str::trim).filter(|limit| !limit.is_empty()) {
        entry.limits.push(Declaration { line, text: limit.to_owned() });
    }
    entry.body = body(reader)?;
    Ok(entry)
}

/// Reads a kernel's body, up to the brace that closes it.
fn body(reader: &mut Reader<'_>) -> Result<Vec<Item>, Fault> {
    let mut items = Vec::new();
    let mut depth = 1;
    loop {
        reader.skip_space();
        let line = reader.line;
        if reader.take('{') {
            depth += 1;
            continue;
        }
        if reader.take('}') {
            depth -= 1;
            if depth == 0 {
                return Ok(items);
            }
            continue;
        }
        if reader.rest.is_empty() {
            return Err(Fault::new(line, "the text ends inside a kernel"));
        }
        if let Some(label) = reader.label() {
            items.push(Item::Label(label, line));
            continue;
        }
        let missing = || Fault::new(line, "a statement without `;`");
        if reader.rest.starts_with(".loc") {
            reader.until_line_end();
            continue;
        }
        let text = reader.until(';').ok_or_else(missing)?;
        if text.starts_with('.') {
            items.push(Item::Declaration(Declaration { line, text: text.trim().to_owned() }));
        } else {
            items.push(Item::Statement(statement(text.trim(), line)?));
        }
    }
}

fn statement(text: &str, line: usize) -> Result<Statement, Fault> {
    let (guard, text) = match text.strip_prefix('@') {
        None => (None, text),
        Some(rest) => {
            let (word, rest) = rest
                .trim_start()
                .split_once(char::is_whitespace)
                .ok_or_else(|| Fault::new(line, "a predicate without an instruction"))?;
            let name = word.strip_prefix('!');
            (Some((name.unwrap_or(word).to_owned(), name.is_some())), rest.trim_start())
        }
    };
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (opcode, rest) = text.split_at(end);
    let opcode: Vec<String> = opcode.split('.').map(str::to_owned).collect();
    if opcode.iter().any(String::is_empty) {
        return Err(Fault::new(line, format!("`{text}` is not an instruction")));
    }
    let mut operands = Vec::new();
    for operand in split(rest, line)? {
        operands.push(self::operand(operand.trim(), line)?);
    }
    Ok(Statement { line, guard, opcode, operands })
}

/// Splits at the commas outside braces and brackets.
fn split(text: &str, line: usize) -> Result<Vec<&str>, Fault> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(Fault::new(line, "braces do not match"));
    }
    if !parts.is_empty() || !text.trim().is_empty() {
        parts.push(&text[start..]);
    }
    Ok(parts)
}

fn operand(text: &str, line: usize) -> Result<Operand, Fault> {
    if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let words: Vec<String> = inner.split(',').map(|word| word.trim().to_owned()).collect();
        if words.iter().any(|word| !is_word(word)) {
            return Err(Fault::new(line, format!("`{text}` is not a vector of operands")));
        }
        return Ok(Operand::Vector(words));
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let (base, offset) = match inner.split_once('+') {
            Some((base, offset)) => (base.trim(), number(offset.trim())),
            None => (inner.trim(), Some(0)),
        };
        return match offset {
            Some(offset) if is_word(base) => Ok(Operand::Address { base: base.to_owned(), offset }),
            _ => Err(Fault::new(line, format!("`{text}` is not an address"))),
        };
    }
    if !is_word(text) {
        return Err(Fault::new(line, format!("`{text}` is not an operand")));
    }
    Ok(Operand::Word(text.to_owned()))
}

/// Parses an integer as written in an address: `-16`, `0x10`.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let digits = digits.strip_suffix('U').unwrap_or(digits);
    let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { magnitude.wrapping_neg() } else { magnitude }.cast_signed())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| is_word_character(c) || c == '.' || c == '-')
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '%'
}

/// Replaces comments by blanks and keeps the line breaks, so that line numbers do not change.
fn without_comments(source: &str) -> Result<String, Fault> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        out.push_str(before);
        if comment.starts_with("//") {
            rest = &comment[comment.find('\n').unwrap_or(comment.len())..];
        } else if comment.starts_with("/*") {
            let line = out.matches('\n').count() + 1;
            let end = comment.find("*/").ok_or_else(|| Fault::new(line, "`/*` without `*/`"))?;
            out.push(' ');
            out.extend(comment[..end].chars().filter(|c| *c == '\n'));
            rest = &comment[end + 2..];
        } else {
            out.push('/');
            rest = &comment[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn advance(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) {
        let len = self.rest.len() - self.rest.trim_start().len();
        self.advance(len);
    }

    /// Takes a directive or an identifier; empty if neither comes next.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c| !(is_word_character(c) || c == '.')).unwrap_or(self.rest.len());
        self.advance(end)
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.rest.starts_with(c);
        if found {
            self.advance(c.len_utf8());
        }
        found
    }

    /// Takes the text before `end`, and `end` itself.
    fn until(&mut self, end: char) -> Option<&'a str> {
        let at = self.rest.find(end)?;
        let taken = self.advance(at);
        self.advance(end.len_utf8());
        Some(taken)
    }

    fn until_line_end(&mut self) -> &'a str {
        let at = self.rest.find('\n').unwrap_or(self.rest.len());
        self.advance(at)
    }

    fn label(&mut self) -> Option<String> {
        let end = self.rest.find(|c| !is_word_character(c)).filter(|end| *end > 0)?;
        let after = self.rest[end..].trim_start();
        if !after.starts_with(':') || after.starts_with("::") {
            return None;
        }
        let name = self.rest[..end].to_owned();
        self.until(':');
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_keep_their_lines_guards_and_operands() {
        let text = read(
            ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 pa,\n .param .u32 n)\n.maxntid 128,1,1\n{\n\
             .reg .b32 %a<4>; // four\nloop: @!%p bra loop;\n /* two\nlines */ mma.kind::f8f6f4 {%a0,%a1}, [%rd1+-16], 0x10;\n}\n",
        )
        .unwrap();
        assert_eq!(text.version, Some((70, 1)));
        let entry = &text.entries[0];
        assert_eq!(entry.parameters.iter().map(|one| one.line).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(entry.limits[0].text, "maxntid 128,1,1");
        let Item::Label(label, 9) = &entry.body[1] else { panic!("{:?}", entry.body) };
        assert_eq!(label, "loop");
        let Item::Statement(branch) = &entry.body[2] else { panic!("{:?}", entry.body) };
        assert_eq!(branch.guard, Some(("%p".into(), true)));
        let Item::Statement(last) = &entry.body[3] else { panic!("{:?}", entry.body) };
        assert_eq!((last.line, last.opcode.join(".")), (11, "mma.kind::f8f6f4".to_owned()));
        assert_eq!(last.operands[1], Operand::Address { base: "%rd1".into(), offset: -16 });
    }

    #[test]
    fn what_is_no_ptx_is_refused_with_its_line() {
        for (source, line) in [
            (".version 7.0\n}", 2),
            (".version x", 1),
            (".entry f() {\nadd.u32 %a, %b", 2),
            (".entry f() {\nadd.u32 {%a, %b;}", 2),
            (".entry f() {\n\nadd.u32 %a;; }", 3),
            ("\n/* never closed", 2),
        ] {
            assert_eq!(read(source).unwrap_err().line, line, "{source}");
        }
    }
}
