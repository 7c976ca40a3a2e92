//! Properties of objects from anybody, for `integration/fuzz`.

use serde::{Deserialize, Serialize};

use crate::{Buffer, FreshMemory, MemoryMapping, ObjectError, ObjectWriter, read_object, write_object};

/// A value with what objects are made of.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ObjectExample {
    /// Something for the body.
    pub name: String,
    /// A buffer.
    pub words: Buffer<u32>,
    /// Buffers that may be missing.
    pub parts: Vec<(Option<Buffer<u64>>, u8)>,
    /// A buffer without alignment.
    pub bytes: Buffer<u8>,
}

/// Reading bytes as an object neither panics nor takes more memory than they have. A value that was read is
/// written with the size that was computed, and written alike by whoever reads that.
///
/// # Panics
/// If a promise is broken.
pub fn objects(bytes: &[u8]) {
    let Ok(value) = read_object::<ObjectExample>(&mapping_of(bytes)) else { return };
    let written = object_of(&value).expect("a value that was read can be written");
    let again: ObjectExample = read_object(&mapping_of(&written)).expect("what was written can be read");
    assert_eq!(object_of(&again).expect("it can be written"), written);
}

/// The bytes of an object.
///
/// # Errors
/// As [`write_object`].
///
/// # Panics
/// If the size was computed wrongly.
pub fn object_of(value: &ObjectExample) -> Result<Vec<u8>, ObjectError> {
    let bytes = write_object(value)?.map()?.to_vec();
    assert_eq!(bytes.len() as u64, ObjectWriter::new(value)?.bytes());
    Ok(bytes)
}

fn mapping_of(bytes: &[u8]) -> MemoryMapping {
    let memory = FreshMemory::allocate(bytes.len() as u64).expect("there is memory");
    memory.write_at(0, bytes).expect("it has this size");
    memory.seal().and_then(|it| it.map()).expect("nobody else knows it")
}
