use std::sync::Arc;

use serde_json::Value;

use super::item::{Item, Piece};
use crate::prompt::Section;

/// What this request shares with the last one that went out.
///
/// Kept as what is shared and what is not, so that following a change costs what it changes, and
/// undoing it finds the last request again.
#[derive(Debug, Clone, Default)]
pub(super) struct Cache {
    /// The log position of its record; none when there was no request.
    pub record: Option<usize>,
    /// The number of items that both begin with.
    pub items: usize,
    /// The last request's items behind those, its first at the end.
    lost: Vec<Arc<Piece>>,
    /// Its tools; none when there was no request.
    tools: Option<Arc<Vec<Value>>>,
    /// Its stable sections.
    sections: Vec<Section>,
}

impl Cache {
    /// A request of `items` items, with these tools and sections, went out, as the record at this log position says.
    pub fn sent(
        record: usize,
        items: usize,
        tools: &Arc<Vec<Value>>,
        sections: &[Section],
    ) -> Self {
        Self {
            record: Some(record),
            items,
            lost: Vec::new(),
            tools: Some(Arc::clone(tools)),
            sections: sections.to_vec(),
        }
    }

    /// The name of the first stable section that is not what it was.
    pub fn lost_section<'a>(&'a self, sections: &'a [Section]) -> Option<&'a str> {
        let same = sections
            .iter()
            .zip(&self.sections)
            .take_while(|(now, sent)| now.name == sent.name && now.text == sent.text)
            .count();
        let first = sections.get(same).or_else(|| self.sections.get(same));
        first.map(|section| section.name.as_str())
    }

    /// The items changed from `from` on; these are what they were.
    pub fn lose<'a>(&mut self, from: usize, old: impl DoubleEndedIterator<Item = &'a Arc<Piece>>) {
        if from < self.items {
            for piece in old.rev() {
                self.lost.push(Arc::clone(piece));
            }
            self.items = from;
        }
    }

    /// The last request's items behind those that are shared, in order.
    pub fn lost(&self) -> impl Iterator<Item = &Arc<Piece>> {
        self.lost.iter().rev()
    }

    /// The last request's tools.
    pub fn tools(&self) -> &[Value] {
        self.tools.as_ref().map_or(&[], |tools| tools.as_slice())
    }

    /// Takes back what stands where it stood in the last request.
    pub fn regain(&mut self, items: &[Item]) {
        while let Some(lost) = self.lost.last()
            && items.get(self.items).is_some_and(|i| i.piece.same(lost))
        {
            self.lost.pop();
            self.items += 1;
        }
    }

    /// Whether the last request had these tools. No request had none.
    pub fn has_tools(&self, tools: &Arc<Vec<Value>>) -> bool {
        self.tools.as_ref() == Some(tools)
    }

    /// Whether there was a request that had other tools.
    pub fn lost_tools(&self, tools: &Arc<Vec<Value>>) -> bool {
        self.tools.as_ref().is_some_and(|sent| sent != tools)
    }

    /// Whether the last request did not simply grow.
    pub fn lost_items(&self) -> bool {
        !self.lost.is_empty()
    }
}
