//! From the parser's events to the tree.

use std::ops::Range;
use std::rc::Rc;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::is_link;
use super::tree::{Align, Block, Line, Span, Style};
use crate::text::hidden::legible;

/// Maximum depth of nested quotes and lists. What is deeper stands at this depth.
const MAX_DEPTH: usize = 12;

/// The blocks of a text at its top level, with where they stand.
pub(super) fn read(text: &str) -> Vec<(Block, Range<usize>)> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::new(text);
    for (event, at) in Parser::new_ext(text, options).into_offset_iter() {
        reader.event(event, at);
    }
    reader.end()
}

/// A block that is not complete.
enum Open {
    Document,
    Quote,
    List(Option<u64>, Vec<Vec<Block>>),
    Item,
    Table(Vec<Align>, Vec<Vec<Line>>),
    /// One that adds no level, because there are too many.
    Flat,
}

/// Something open, with the blocks that it holds so far.
struct Frame {
    open: Open,
    blocks: Vec<(Block, Range<usize>)>,
    /// Up to where its text is accounted for.
    read: usize,
}

struct Reader<'a> {
    text: &'a str,
    frames: Vec<Frame>,
    /// The number of frames that add a level.
    depth: usize,
    /// The text that is collected, and where it begins.
    line: Line,
    line_at: Range<usize>,
    style: Style,
    /// The code that is collected.
    code: Option<(Option<String>, String)>,
    /// The links that are open: the address, its title, and where in the line its text begins.
    links: Vec<Link>,
}

struct Link {
    target: String,
    title: String,
    image: bool,
    from: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let document = Frame {
            open: Open::Document,
            blocks: Vec::new(),
            read: 0,
        };
        Self {
            text,
            frames: vec![document],
            depth: 0,
            line: Vec::new(),
            line_at: 0..0,
            style: Style::default(),
            code: None,
            links: Vec::new(),
        }
    }

    fn end(mut self) -> Vec<(Block, Range<usize>)> {
        self.flush();
        self.definitions(self.text.len());
        self.frames
            .into_iter()
            .next()
            .map(|frame| frame.blocks)
            .unwrap_or_default()
    }

    fn event(&mut self, event: Event<'_>, at: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.finish(tag, at),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text, self.style, at),
            },
            Event::Code(text) => {
                let style = Style {
                    code: true,
                    ..self.style
                };
                self.push(&text, style, at);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, self.style, at),
            Event::SoftBreak | Event::HardBreak => self.push("\n", self.style, at),
            Event::TaskListMarker(done) => {
                let mark = if done { "☑ " } else { "☐ " };
                self.push(mark, self.style, at);
            }
            Event::Rule => {
                self.flush();
                self.block(Block::Rule, at);
            }
            // Of extensions that are not switched on.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push(&text, self.style, at);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: Range<usize>) {
        match tag {
            Tag::Emphasis => self.style.emphasis = true,
            Tag::Strong => self.style.strong = true,
            Tag::Strikethrough => self.style.struck = true,
            Tag::Link {
                dest_url, title, ..
            } => self.link(&dest_url, &title, false),
            Tag::Image {
                dest_url, title, ..
            } => {
                self.push("[image: ", self.style, at);
                self.link(&dest_url, &title, true);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let info = match kind {
                    CodeBlockKind::Fenced(info) => Some(legible(&info).into_owned()),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((info, String::new()));
            }
            Tag::BlockQuote(_) => self.open(Open::Quote, at),
            Tag::List(first) => self.open(Open::List(first, Vec::new()), at),
            Tag::Item => self.open(Open::Item, at),
            Tag::Table(columns) => {
                let columns = columns.into_iter().map(align).collect();
                self.open(Open::Table(columns, Vec::new()), at);
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(Open::Table(_, rows)) = self.frames.last_mut().map(|f| &mut f.open) {
                    rows.push(Vec::new());
                }
            }
            _ => self.flush(),
        }
    }

    fn finish(&mut self, tag: TagEnd, at: Range<usize>) {
        match tag {
            TagEnd::Emphasis => self.style.emphasis = false,
            TagEnd::Strong => self.style.strong = false,
            TagEnd::Strikethrough => self.style.struck = false,
            TagEnd::Link | TagEnd::Image => self.linked(at),
            TagEnd::Heading(level) => {
                let line = self.take();
                self.block(Block::Heading(level as u8, line), at);
            }
            TagEnd::CodeBlock => {
                if let Some((info, code)) = self.code.take() {
                    let code = legible(&code).into_owned();
                    self.block(Block::Code(info, code), at);
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item | TagEnd::Table => {
                self.close(at);
            }
            TagEnd::TableCell => {
                let line = self.take();
                if let Some(Open::Table(_, rows)) = self.frames.last_mut().map(|f| &mut f.open)
                    && let Some(row) = rows.last_mut()
                {
                    row.push(line);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            _ => {
                let line = self.take();
                if !line.is_empty() {
                    self.block(Block::Paragraph(line), at);
                }
            }
        }
    }

    /// Adds text to the line that is collected.
    fn push(&mut self, text: &str, style: Style, at: Range<usize>) {
        if self.line.is_empty() {
            self.line_at = at.clone();
        }
        self.line_at.end = self.line_at.end.max(at.end);
        let own = self.links.last().map_or(0, |link| link.from);
        match self.line.get_mut(own..).and_then(<[Span]>::last_mut) {
            // In one piece, for what hides between characters is told by its neighbours.
            Some(last) if last.style == style && last.link.is_none() => last.text.push_str(text),
            _ => self.line.push(Span {
                text: text.to_owned(),
                style,
                link: None,
            }),
        }
    }

    fn link(&mut self, target: &str, title: &str, image: bool) {
        self.links.push(Link {
            target: legible(target).into_owned(),
            title: legible(title).into_owned(),
            image,
            from: self.line.len(),
        });
    }

    /// Ends a link: its text leads there if that is allowed, and says where that is.
    fn linked(&mut self, at: Range<usize>) {
        let Some(link) = self.links.pop() else {
            return;
        };
        let target: Option<Rc<str>> =
            (!link.image && is_link(&link.target)).then(|| link.target.as_str().into());
        let from = link.from.min(self.line.len());
        let mut said = String::new();
        for span in &mut self.line[from..] {
            span.link = target.clone();
            said.push_str(&span.text);
        }
        let aside = Style {
            aside: true,
            ..Style::default()
        };
        let bare = link.target.strip_prefix("mailto:");
        if said != link.target && Some(said.as_str()) != bare && !link.target.is_empty() {
            self.push(&format!(" ({})", link.target), aside, at.clone());
        }
        if !link.title.is_empty() {
            self.push(&format!(" “{}”", link.title), aside, at.clone());
        }
        if link.image {
            self.push("]", self.style, at);
        }
    }

    /// The line that was collected, harmless to show.
    fn take(&mut self) -> Line {
        self.links.clear();
        self.style = Style::default();
        let mut line = std::mem::take(&mut self.line);
        if let Some(last) = line.last_mut() {
            let shown = last.text.trim_end_matches('\n').len();
            last.text.truncate(shown);
        }
        line.retain(|span| !span.text.is_empty());
        for span in &mut line {
            if let std::borrow::Cow::Owned(shown) = legible(&span.text) {
                span.text = shown;
            }
        }
        line
    }

    /// Text without a paragraph around it, as in the items of a list, becomes one.
    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let at = self.line_at.clone();
        let line = self.take();
        if !line.is_empty() {
            self.block(Block::Paragraph(line), at);
        }
    }

    fn open(&mut self, open: Open, at: Range<usize>) {
        self.flush();
        self.definitions(at.start);
        let too_deep = self.depth >= MAX_DEPTH;
        let open = match open {
            Open::Quote | Open::List(..) | Open::Item if too_deep => Open::Flat,
            open => {
                self.depth += 1;
                open
            }
        };
        self.frames.push(Frame {
            open,
            blocks: Vec::new(),
            read: at.start,
        });
    }

    fn close(&mut self, at: Range<usize>) {
        self.flush();
        self.definitions(at.end);
        if self.frames.len() < 2 {
            return;
        }
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let blocks = frame.blocks;
        let plain = |blocks: Vec<(Block, _)>| blocks.into_iter().map(|(block, _)| block).collect();
        if !matches!(frame.open, Open::Flat) {
            self.depth -= 1;
        }
        let block = match frame.open {
            Open::Document => return,
            Open::Flat => {
                if let Some(around) = self.frames.last_mut() {
                    around.blocks.extend(blocks);
                    around.read = around.read.max(at.end);
                }
                return;
            }
            Open::Quote => Block::Quote(plain(blocks)),
            Open::Item => {
                if let Some(Frame {
                    open: Open::List(_, items),
                    read,
                    ..
                }) = self.frames.last_mut()
                {
                    items.push(plain(blocks));
                    *read = at.end;
                }
                return;
            }
            Open::List(first, mut items) => {
                // Definitions between the items.
                items.extend(blocks.into_iter().map(|(block, _)| vec![block]));
                Block::List(first, items)
            }
            Open::Table(columns, rows) => self.table(columns, rows, at.clone()),
        };
        self.block(block, at);
    }

    /// A table, or its text where a row has more cells than the table has columns: those would be lost.
    fn table(&self, columns: Vec<Align>, rows: Vec<Vec<Line>>, at: Range<usize>) -> Block {
        let written = &self.text[at];
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
        let spans = rows.iter().flatten().flatten();
        let shown: usize = spans.map(|span| letters(&span.text)).sum();
        if shown < letters(written) {
            Block::Code(None, legible(written).into_owned())
        } else {
            Block::Table(columns, rows)
        }
    }

    fn block(&mut self, block: Block, at: Range<usize>) {
        self.definitions(at.start);
        if let Some(frame) = self.frames.last_mut() {
            frame.read = frame.read.max(at.end);
            frame.blocks.push((block, at));
        }
    }

    /// Shows what the parser left out before this place: definitions of links, which may say anything.
    fn definitions(&mut self, to: usize) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let from = frame.read;
        let Some(left_out) = self.text.get(from..to) else {
            return;
        };
        if !left_out.contains("]:") || matches!(frame.open, Open::Table(..)) {
            return;
        }
        frame.read = to;
        let span = Span {
            text: legible(left_out.trim()).into_owned(),
            style: Style::default(),
            link: None,
        };
        let at = from + left_out.len() - left_out.trim_start().len()..to;
        frame.blocks.push((Block::Paragraph(vec![span]), at));
    }
}

fn align(column: Alignment) -> Align {
    match column {
        Alignment::None | Alignment::Left => Align::Left,
        Alignment::Center => Align::Center,
        Alignment::Right => Align::Right,
    }
}
