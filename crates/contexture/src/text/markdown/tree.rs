//! The tree that Markdown becomes.

use std::rc::Rc;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A heading with its level, from 1 to 6.
    Heading(u8, Line),
    /// A paragraph.
    Paragraph(Line),
    /// Code, with the info string of its fence; none for indented code.
    Code(Option<String>, String),
    /// A quote.
    Quote(Vec<Block>),
    /// A list, with the number of its first item where it is numbered.
    List(Option<u64>, Vec<Vec<Block>>),
    /// A table: the columns, and the rows with the head first.
    Table(Vec<Align>, Vec<Vec<Line>>),
    /// A horizontal rule.
    Rule,
}

/// Text with styles. A line break is a `\n` in it.
pub type Line = Vec<Span>;

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub text: String,
    /// Its style.
    pub style: Style,
    /// The address that it leads to.
    pub link: Option<Rc<str>>,
}

/// A style.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Strong emphasis.
    pub strong: bool,
    /// Emphasis.
    pub emphasis: bool,
    /// Struck through.
    pub struck: bool,
    /// Code.
    pub code: bool,
    /// An addition of ours, such as the address behind a link's text.
    pub aside: bool,
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// To the left.
    Left,
    /// In the middle.
    Center,
    /// To the right.
    Right,
}
