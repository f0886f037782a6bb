use std::io::IsTerminal;

/// Colours, or none: on a terminal that wants them.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    pub colour: bool,
    pub width: usize,
}

impl Paint {
    /// For standard output as it is.
    pub fn stdout() -> Self {
        Self::on(std::io::stdout().is_terminal())
    }

    /// For standard error as it is.
    pub fn stderr() -> Self {
        Self::on(std::io::stderr().is_terminal())
    }

    fn on(terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let (_, columns) = console::Term::stdout().size();
        Self {
            colour: terminal && !set("NO_COLOR") && !dumb,
            width: if terminal {
                usize::from(columns).clamp(40, 160)
            } else {
                100
            },
        }
    }

    /// In one of the 256 colours.
    pub fn fg(self, colour: u8, text: &str) -> String {
        if self.colour {
            format!("\x1b[38;5;{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn dim(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[2m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn bold(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
