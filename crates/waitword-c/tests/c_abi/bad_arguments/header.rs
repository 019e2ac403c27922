//! The functions of the header, parsed from its text.

/// A function as the header declares it.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    returns: String,
    pub(crate) parameters: Vec<Parameter>,
    /// According to its comment, it may have to wait.
    pub(crate) blocks: bool,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    /// Without spaces around stars: `const struct timespec*`.
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// All functions of a header, in order.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find("/**") {
        let comment_and_more = &rest[begin..];
        let Some(end) = comment_and_more.find("*/") else {
            break;
        };
        let (comment, after) = comment_and_more.split_at(end + 2);
        rest = after;
        let declaration = after.split(';').next().unwrap_or("").trim();
        if let Some(function) = function(comment, declaration) {
            functions.push(function);
        }
    }
    functions
}

fn function(comment: &str, declaration: &str) -> Option<Function> {
    let declaration = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
    let (head, parameters) = declaration.strip_suffix(')')?.split_once('(')?;
    let (returns, name) = head.rsplit_once(' ')?;
    if !name.starts_with("ww_") || returns.contains('{') || returns.starts_with('#') {
        return None;
    }
    let blocks =
        comment.lines().any(|line| line.trim_start_matches([' ', '*']).starts_with("Blocks"));
    Some(Function {
        name: name.to_owned(),
        returns: returns.to_owned(),
        parameters: split(parameters).into_iter().map(parameter).collect(),
        blocks,
    })
}

/// Splits at the commas outside parentheses.
fn split(parameters: &str) -> Vec<&str> {
    if parameters == "void" {
        return Vec::new();
    }
    let mut depth = 0;
    let mut parts = Vec::new();
    let mut begin = 0;
    for (index, character) in parameters.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(parameters[begin..index].trim());
                begin = index + 1;
            }
            _ => {}
        }
    }
    parts.push(parameters[begin..].trim());
    parts
}

fn parameter(text: &str) -> Parameter {
    // `void (*routine)(void)`
    if let Some((_, named)) = text.split_once("(*") {
        let name = named.split(')').next().unwrap_or_default();
        return Parameter { kind: "function".to_owned(), name: name.to_owned() };
    }
    let at = text
        .rfind(|character: char| !character.is_alphanumeric() && character != '_')
        .map_or(0, |index| index + 1);
    Parameter { kind: text[..at].replace(" *", "*").trim().to_owned(), name: text[at..].to_owned() }
}

impl Function {
    pub(crate) fn returns_int(&self) -> bool {
        self.returns == "int"
    }

    /// The error that a return value stands for.
    pub(crate) fn error_of(&self, answer: i64, errno: i32) -> Option<i32> {
        match &*self.returns {
            "int" if answer > 0 => Some(answer as i32),
            "long" if answer == -1 => Some(errno),
            _ => None,
        }
    }

    /// Whether the function can return this value: 0, an error number, -1 for an error in `errno`
    /// or for the last thread of a barrier.
    pub(crate) fn is_answer(&self, answer: i64) -> bool {
        match &*self.returns {
            "int" => (-1..=133).contains(&answer),
            "long" => answer >= -1,
            _ => true,
        }
    }
}
