//! What the user was told in a run, by the model and by its tools.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Event;
use crate::remember::Remembered;

/// What was said, in order. The same text twice in a row is said once.
pub(crate) struct Said<'a> {
    last: Option<String>,
    /// The run as it is remembered, with what was said in it.
    pub remembered: Remembered<'a>,
    on: &'a (dyn Fn(Event) + Send + Sync),
    from_tools: (UnboundedSender<String>, UnboundedReceiver<String>),
}

impl<'a> Said<'a> {
    pub(crate) fn new(remembered: Remembered<'a>, on: &'a (dyn Fn(Event) + Send + Sync)) -> Self {
        Self {
            last: None,
            remembered,
            on,
            from_tools: unbounded_channel(),
        }
    }

    /// A way to say something from inside a tool.
    pub(crate) fn teller(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let sender = self.from_tools.0.clone();
        move |text| {
            // The other end lives as long as the run does.
            let _ = sender.send(text.to_owned());
        }
    }

    /// Waits for what a tool has to say.
    pub(crate) async fn heard(&mut self) -> String {
        match self.from_tools.1.recv().await {
            Some(text) => text,
            None => std::future::pending().await,
        }
    }

    /// Says what tools had to say and nobody waited for.
    pub(crate) fn catch_up(&mut self) {
        while let Ok(text) = self.from_tools.1.try_recv() {
            self.say(text);
        }
    }

    pub(crate) fn say(&mut self, text: String) {
        if self.last.as_ref() == Some(&text) {
            return;
        }
        self.remembered.said(&text);
        self.last = Some(text.clone());
        (self.on)(Event::Assistant { text });
    }
}
