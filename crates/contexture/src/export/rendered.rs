//! Markdown as HTML, with no tag, attribute or address but those written here.

use crate::text::markdown::{Align, Block, Line, Span, read};

/// The levels of headings that stand above a message's own.
const BELOW: u8 = 2;

/// A message's Markdown as HTML.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for (block, _) in read(text) {
        write(&block, &mut out);
    }
    out
}

fn write(block: &Block, out: &mut String) {
    match block {
        Block::Heading(level, text) => {
            let level = (level + BELOW).min(6);
            element(&format!("h{level}"), "", text, out);
        }
        Block::Paragraph(text) => element("p", "", text, out),
        Block::Code(info, code) => {
            out.push_str("<div class=\"code\">");
            if let Some(info) = info.as_deref().filter(|info| !info.is_empty()) {
                out.push_str("<p>");
                escape(info, out);
                out.push_str("</p>");
            }
            // A line break behind the tag is none.
            out.push_str("<pre>\n");
            escape(code, out);
            out.push_str("</pre></div>\n");
        }
        Block::Quote(blocks) => {
            out.push_str("<blockquote>\n");
            blocks.iter().for_each(|block| write(block, out));
            out.push_str("</blockquote>\n");
        }
        Block::List(first, items) => list(*first, items, out),
        Block::Table(columns, rows) => table(columns, rows, out),
        Block::Rule => out.push_str("<hr>\n"),
    }
}

fn list(first: Option<u64>, items: &[Vec<Block>], out: &mut String) {
    match first {
        Some(first) => out.push_str(&format!("<ol start=\"{first}\">\n")),
        None => out.push_str("<ul>\n"),
    }
    for item in items {
        out.push_str("<li>");
        item.iter().for_each(|block| write(block, out));
        out.push_str("</li>\n");
    }
    out.push_str(if first.is_some() {
        "</ol>\n"
    } else {
        "</ul>\n"
    });
}

fn table(columns: &[Align], rows: &[Vec<Line>], out: &mut String) {
    out.push_str("<div class=\"wide\"><table>\n");
    for (number, row) in rows.iter().enumerate() {
        let cell = if number == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for (column, text) in row.iter().enumerate() {
            let class = match columns.get(column) {
                Some(Align::Center) => "center",
                Some(Align::Right) => "right",
                Some(Align::Left) | None => "",
            };
            element(cell, class, text, out);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn element(name: &str, class: &str, text: &Line, out: &mut String) {
    match class {
        "" => out.push_str(&format!("<{name}>")),
        class => out.push_str(&format!("<{name} class=\"{class}\">")),
    }
    text.iter().for_each(|span| piece(span, out));
    out.push_str(&format!("</{name}>\n"));
}

fn piece(span: &Span, out: &mut String) {
    let style = span.style;
    let tags = [
        (style.strong, "strong"),
        (style.emphasis, "em"),
        (style.struck, "del"),
        (style.code, "code"),
        (style.aside, "small"),
    ];
    let tags = || {
        tags.into_iter()
            .filter_map(|(holds, tag)| holds.then_some(tag))
    };
    if let Some(address) = &span.link {
        out.push_str("<a rel=\"noreferrer noopener\" href=\"");
        escape(address, out);
        out.push_str("\">");
    }
    tags().for_each(|tag| out.push_str(&format!("<{tag}>")));
    let mut lines = span.text.split('\n');
    escape(lines.next().unwrap_or_default(), out);
    for line in lines {
        out.push_str("<br>\n");
        escape(line, out);
    }
    tags()
        .rev()
        .for_each(|tag| out.push_str(&format!("</{tag}>")));
    if span.link.is_some() {
        out.push_str("</a>");
    }
}

/// Text that is no markup, as an element's content or as a value in quotes.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::html;

    #[test]
    fn markup_is_html_and_html_is_text() {
        let text = "# T\n\n**a** `<b>` [x](https://e.example/?a=\"&b=1) <i>\n\n- 1\n- 2\n\n```sh\n<c>\n```\n\n|h|\n|-:|\n|1|\n";
        insta::assert_snapshot!(html(text), @r#"
        <h3>T</h3>
        <p><strong>a</strong> <code>&lt;b&gt;</code> <a rel="noreferrer noopener" href="https://e.example/?a=&quot;&amp;b=1">x</a><small> (https://e.example/?a=&quot;&amp;b=1)</small> &lt;i&gt;</p>
        <ul>
        <li><p>1</p>
        </li>
        <li><p>2</p>
        </li>
        </ul>
        <div class="code"><p>sh</p><pre>
        &lt;c&gt;
        </pre></div>
        <div class="wide"><table>
        <tr><th class="right">h</th>
        </tr>
        <tr><td class="right">1</td>
        </tr>
        </table></div>
        "#);
    }
}
