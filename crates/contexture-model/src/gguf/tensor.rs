use std::collections::HashSet;
use std::io::{Read, Seek};

use super::error::{Fault, GgufError, Place, grouped};
use super::source::Source;

/// The longest name of a tensor that the engine takes.
const LONGEST_NAME: u64 = 63;
/// What a tensor takes in a header at least: the length of its name, a byte of it, the number of
/// dimensions, one of them, its type and its offset.
pub(super) const SMALLEST_TENSOR: u64 = 8 + 1 + 4 + 8 + 4 + 8;
/// What one takes in memory, besides its name, of which there are two.
const KEPT_FOR_A_TENSOR: u64 = 256;
/// The engine maps tensors into memory where they lie, and ends the process when one lies elsewhere
/// than on a multiple of this.
const MAPPED_AT: u64 = 32;

/// A tensor of a model, where it lies in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// How many elements there are in each of its dimensions, those of a row first.
    pub dimensions: Vec<u64>,
    /// The name of the type of its elements.
    pub type_name: &'static str,
    /// Where its data begins in the file.
    pub offset: u64,
    /// How many bytes its data has.
    pub bytes: u64,
}

impl Tensor {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.dimensions.iter().product()
    }
}

/// Reads the list of tensors. Their offsets still count from where the data begins.
pub(super) fn read<R: Read + Seek>(
    source: &mut Source<'_, R>,
    count: u64,
) -> Result<Vec<Tensor>, GgufError> {
    let mut names = HashSet::new();
    let mut tensors = Vec::new();
    for n in 1..=count {
        source.place = Place::NthTensor(n);
        let name = source.name(LONGEST_NAME)?;
        source.keep(2 * name.len() as u64 + KEPT_FOR_A_TENSOR)?;
        source.place = Place::Tensor(name.clone());
        if !names.insert(name.clone()) {
            return Err(source.broken("it is there twice"));
        }
        tensors.push(one(source, name)?);
    }
    source.place = Place::File;
    Ok(tensors)
}

fn one<R: Read + Seek>(source: &mut Source<'_, R>, name: String) -> Result<Tensor, GgufError> {
    let many = source.u32()?;
    if !(1..=4).contains(&many) {
        return Err(source.broken(format!("it has {many} dimensions, and 1 to 4 are possible")));
    }
    let mut dimensions = Vec::with_capacity(many as usize);
    let mut elements = 1u64;
    for _ in 0..many {
        let dimension = source.u64()?;
        elements = match elements.checked_mul(dimension) {
            Some(0) => return Err(source.broken("one of its dimensions is 0")),
            Some(elements) if elements <= i64::MAX as u64 => elements,
            _ => return Err(source.broken("it has more elements than can be counted")),
        };
        dimensions.push(dimension);
    }
    let number = source.u32()?;
    let Some(of) = TYPES.iter().find(|of| of.number == number) else {
        let what = format!("its type has the number {number}, which no type in use has");
        return Err(source.broken(what));
    };
    if dimensions[0] % of.block != 0 {
        let (row, block) = (grouped(dimensions[0]), of.block);
        let what = format!(
            "its rows have {row} elements, and those of {} come in blocks of {block}",
            of.name
        );
        return Err(source.broken(what));
    }
    let Some(bytes) = (elements / of.block).checked_mul(of.size) else {
        return Err(source.broken("it has more bytes than can be counted"));
    };
    check_use(source, of, &name, many)?;
    Ok(Tensor {
        name,
        dimensions,
        type_name: of.name,
        offset: source.u64()?,
        bytes,
    })
}

/// The engine ends the process when it shall compute with what it cannot compute with.
fn check_use<R: Read + Seek>(
    source: &Source<'_, R>,
    of: &Type,
    name: &str,
    dimensions: u32,
) -> Result<(), GgufError> {
    let index = name.contains("tid2eid") || !name.ends_with(".weight");
    let fits = match of.used {
        Used::Vectors => true,
        Used::Matrices => dimensions > 1,
        Used::Indexes => index,
        Used::Never => false,
    };
    match fits {
        true => Ok(()),
        false => {
            let dimensions = if dimensions == 1 {
                "1 dimension"
            } else {
                "several dimensions"
            };
            let what = format!("weights of {dimensions} cannot be of type {}", of.name);
            Err(source.broken(what))
        }
    }
}

/// Places the tensors behind the header, and checks that each lies there alone.
pub(super) fn place(
    tensors: &mut [Tensor],
    header: u64,
    alignment: u64,
    file_len: u64,
) -> Result<(), GgufError> {
    let too_far =
        |tensor: &Tensor| GgufError::tensor(&tensor.name, "it lies further than any file reaches");
    let mut end = 0u64;
    let mut missing = 0;
    for tensor in tensors {
        let expected = end.checked_next_multiple_of(alignment);
        let expected = expected.ok_or_else(|| too_far(tensor))?;
        let (offset, name) = (tensor.offset, &tensor.name);
        let at = grouped(offset);
        if offset % alignment != 0 {
            let what = format!("it begins at byte {at}, which is no multiple of {alignment}");
            return Err(GgufError::tensor(name, what));
        }
        if offset < expected {
            let what = format!("it begins at byte {at}, inside of another tensor");
            return Err(GgufError::tensor(name, what));
        }
        if offset > expected {
            let what = format!(
                "it begins at byte {at}, and not behind the tensor before it, at {}",
                grouped(expected)
            );
            return Err(GgufError::tensor(name, what));
        }
        end = offset
            .checked_add(tensor.bytes)
            .ok_or_else(|| too_far(tensor))?;
        let data = header.checked_next_multiple_of(alignment);
        let begins = data.and_then(|data| data.checked_add(offset));
        let begins = begins.ok_or_else(|| too_far(tensor))?;
        let ends = begins.checked_add(tensor.bytes);
        let ends = ends.ok_or_else(|| too_far(tensor))?;
        if begins % MAPPED_AT != 0 {
            let what = format!(
                "it lies at byte {} of the file, and the engine needs a multiple of {MAPPED_AT}",
                grouped(begins)
            );
            return Err(GgufError::tensor(name, what));
        }
        tensor.offset = begins;
        missing = ends.saturating_sub(file_len);
    }
    match missing {
        0 => Ok(()),
        missing => Err(GgufError::new(Place::File, Fault::Truncated { missing })),
    }
}

/// A type of elements: so many of them in a block of so many bytes.
struct Type {
    number: u32,
    name: &'static str,
    block: u64,
    size: u64,
    used: Used,
}

/// What the engine can compute with.
enum Used {
    /// For everything.
    Vectors,
    /// For what is multiplied with.
    Matrices,
    /// For numbers of other things.
    Indexes,
    /// For nothing that lies in a file.
    Never,
}

const fn of(number: u32, name: &'static str, block: u64, size: u64, used: Used) -> Type {
    Type {
        number,
        name,
        block,
        size,
        used,
    }
}

/// The types of ggml. The numbers between them had types that were removed.
const TYPES: [Type; 35] = {
    use Used::*;
    [
        of(0, "f32", 1, 4, Vectors),
        of(1, "f16", 1, 2, Matrices),
        of(2, "q4_0", 32, 18, Matrices),
        of(3, "q4_1", 32, 20, Matrices),
        of(6, "q5_0", 32, 22, Matrices),
        of(7, "q5_1", 32, 24, Matrices),
        of(8, "q8_0", 32, 34, Matrices),
        of(9, "q8_1", 32, 36, Never),
        of(10, "q2_K", 256, 84, Matrices),
        of(11, "q3_K", 256, 110, Matrices),
        of(12, "q4_K", 256, 144, Matrices),
        of(13, "q5_K", 256, 176, Matrices),
        of(14, "q6_K", 256, 210, Matrices),
        of(15, "q8_K", 256, 292, Never),
        of(16, "iq2_xxs", 256, 66, Matrices),
        of(17, "iq2_xs", 256, 74, Matrices),
        of(18, "iq3_xxs", 256, 98, Matrices),
        of(19, "iq1_s", 256, 50, Matrices),
        of(20, "iq4_nl", 32, 18, Matrices),
        of(21, "iq3_s", 256, 110, Matrices),
        of(22, "iq2_s", 256, 82, Matrices),
        of(23, "iq4_xs", 256, 136, Matrices),
        of(24, "i8", 1, 1, Never),
        of(25, "i16", 1, 2, Never),
        of(26, "i32", 1, 4, Indexes),
        of(27, "i64", 1, 8, Indexes),
        of(28, "f64", 1, 8, Never),
        of(29, "iq1_m", 256, 56, Matrices),
        of(30, "bf16", 1, 2, Matrices),
        of(34, "tq1_0", 256, 54, Matrices),
        of(35, "tq2_0", 256, 66, Matrices),
        of(39, "mxfp4", 32, 17, Matrices),
        of(40, "nvfp4", 64, 36, Matrices),
        of(41, "q1_0", 128, 18, Matrices),
        of(42, "q2_0", 64, 18, Matrices),
    ]
};
