//! Values to objects, and objects to values.

use std::marker::PhantomData;

use cohabit_wire::codec::{self, CodecError};
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};

use crate::buffer::BufferBytes;
use crate::errors::{MemoryError, ObjectError};
use crate::layout::{CheckedLayout, MAX_BODY, PlannedLayout};
use crate::mapping::MemoryMapping;
use crate::memfd::{FreshMemory, SealedMemory};
use crate::scope::{ReadingScope, Scope, within};

/// A value that is to become an object: its size is known, and its buffers are where they were.
#[derive(Debug)]
pub struct ObjectWriter {
    body: Vec<u8>,
    buffers: Vec<Box<dyn BufferBytes>>,
    layout: PlannedLayout,
}

impl ObjectWriter {
    /// Encodes what is not in buffers.
    ///
    /// # Errors
    /// If the value refuses, or is above a limit.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<ObjectWriter, ObjectError> {
        let mut body = Vec::new();
        let writing = Scope::Writing(Vec::new());
        let (written, scope) = within(writing, || codec::encode_into(value, MAX_BODY, &mut body));
        written.map_err(|error| match error {
            CodecError::TooLong { limit } => ObjectError::BodyTooLarge { limit },
            CodecError::Undecodable(text) => ObjectError::Unwritable(text),
        })?;
        let Scope::Writing(buffers) = scope else { unreachable!("a scope that is entered is left") };
        let layout =
            PlannedLayout::new(body.len(), buffers.iter().map(|it| (it.bytes().len(), it.element())))?;
        Ok(ObjectWriter { body, buffers, layout })
    }

    /// The exact size of the object, in bytes, for whoever admits and allocates it.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.layout.bytes
    }

    /// Writes the object into memory of that size and seals it.
    ///
    /// # Errors
    /// If the memory has another size, or cannot be written or sealed.
    pub fn write(&self, memory: FreshMemory) -> Result<SealedMemory, MemoryError> {
        if memory.bytes() != self.bytes() {
            return Err(MemoryError::WrongSize { stated: self.bytes(), found: memory.bytes() });
        }
        memory.write_at(0, &self.layout.header)?;
        memory.write_at(self.layout.header.len() as u64, &self.body)?;
        for (buffer, place) in self.buffers.iter().zip(&self.layout.places) {
            memory.write_at(*place, buffer.bytes())?;
        }
        memory.seal()
    }
}

/// Writes an object into memory of this process.
///
/// # Errors
/// If the value refuses, is above a limit, or there is no memory.
pub fn write_object<T: Serialize + ?Sized>(value: &T) -> Result<SealedMemory, ObjectError> {
    let writer = ObjectWriter::new(value)?;
    Ok(writer.write(FreshMemory::allocate(writer.bytes())?)?)
}

/// The value in an object, which may come from anybody. Its buffers are windows into the mapping and keep it.
///
/// # Errors
/// If the bytes are no object, or one of another type.
pub fn read_object<T: DeserializeOwned>(object: &MemoryMapping) -> Result<T, ObjectError> {
    read_object_seed(PhantomData::<T>, object)
}

/// As [`read_object`], of what the seed makes.
///
/// # Errors
/// As [`read_object`].
pub fn read_object_seed<'de, S: DeserializeSeed<'de>>(
    seed: S,
    object: &'de MemoryMapping,
) -> Result<S::Value, ObjectError> {
    let layout = CheckedLayout::read(object)?;
    let body = &object[layout.body.clone()];
    let reading = Scope::Reading(ReadingScope { mapping: object.clone(), layout, next: 0 });
    let (decoded, scope) = within(reading, || codec::decode_seed_within(seed, body, MAX_BODY));
    let value = decoded.map_err(|error| match error {
        CodecError::TooLong { limit } => ObjectError::BodyTooLarge { limit },
        CodecError::Undecodable(text) => ObjectError::OtherType(text),
    })?;
    let Scope::Reading(ReadingScope { layout, next, .. }) = scope else {
        unreachable!("a scope that is entered is left")
    };
    if next < layout.buffers {
        return Err(ObjectError::OtherType(format!("it has {next} buffers of {}", layout.buffers)));
    }
    Ok(value)
}
