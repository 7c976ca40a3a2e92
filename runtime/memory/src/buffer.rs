//! Arrays of plain numbers that are not copied when an object is read.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::layout::{BUFFER_ALIGNMENT, ElementShape};
use crate::mapping::MemoryMapping;
use crate::scope;

/// An immutable array of plain data, such as numbers. A clone is cheap: it shares the elements.
///
/// In an object that [`ObjectWriter`](crate::ObjectWriter) writes, it lies beside the body, and one that
/// [`read_object`](crate::read_object) returns is a window into the mapping, which it keeps. In any other
/// format it is a sequence, like `Vec<T>`; so it is in formats for people, such as JSON, that are used inside
/// of an object.
pub struct Buffer<T> {
    content: Content<T>,
}

enum Content<T> {
    Owned(Arc<Vec<T>>),
    Window(Window<T>),
}

/// A part of a mapping. Its alignment and its length fit elements of `T`.
struct Window<T> {
    mapping: MemoryMapping,
    place: Range<usize>,
    elements: PhantomData<fn() -> T>,
}

impl<T: Pod> Buffer<T> {
    /// Mappings align no further, and elements without bytes cannot be counted.
    const FITS: () = assert!(
        size_of::<T>() > 0 && align_of::<T>() <= BUFFER_ALIGNMENT,
        "elements of a buffer have at least one byte, and are aligned to at most 64"
    );

    const SHAPE: ElementShape =
        ElementShape { size: size_of::<T>() as u32, alignment: align_of::<T>() as u32 };

    /// Whether it is a window into shared memory.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.content, Content::Window(_))
    }
}

impl<T: Pod> From<Vec<T>> for Buffer<T> {
    fn from(elements: Vec<T>) -> Buffer<T> {
        let () = Self::FITS;
        Buffer { content: Content::Owned(Arc::new(elements)) }
    }
}

impl<T: Pod> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Buffer<T> {
        elements.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: Pod> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Vec::new().into()
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        let content = match &self.content {
            Content::Owned(elements) => Content::Owned(Arc::clone(elements)),
            Content::Window(Window { mapping, place, elements }) => Content::Window(Window {
                mapping: mapping.clone(),
                place: place.clone(),
                elements: *elements,
            }),
        };
        Buffer { content }
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.content {
            Content::Owned(elements) => elements,
            Content::Window(window) => bytemuck::cast_slice(&window.mapping[window.place.clone()]),
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        **self == **other
    }
}

impl<T: Pod + Eq> Eq for Buffer<T> {}

impl<T: Pod> fmt::Debug for Buffer<T> {
    /// The elements would fill the screen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} of {})", self.len(), std::any::type_name::<T>())
    }
}

impl<T: Pod + Send + Sync + Serialize> Serialize for Buffer<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_seq(self.iter());
        }
        match scope::note(|| Box::new(self.clone())).map_err(S::Error::custom)? {
            Some(index) => serializer.serialize_u32(index),
            None => serializer.collect_seq(self.iter()),
        }
    }
}

impl<'de, T: Pod + Deserialize<'de>> Deserialize<'de> for Buffer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Buffer<T>, D::Error> {
        if deserializer.is_human_readable() || !scope::is_reading() {
            return Vec::deserialize(deserializer).map(Buffer::from);
        }
        let () = Self::FITS;
        let index = u32::deserialize(deserializer)?;
        let (mapping, place) = scope::claim(index, Self::SHAPE).map_err(D::Error::custom)?;
        Ok(Buffer { content: Content::Window(Window { mapping, place, elements: PhantomData }) })
    }
}

/// A buffer of any type, on its way into an object.
pub(crate) trait BufferBytes: Send + Sync + fmt::Debug {
    fn bytes(&self) -> &[u8];
    fn element(&self) -> ElementShape;
}

impl<T: Pod + Send + Sync> BufferBytes for Buffer<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn element(&self) -> ElementShape {
        Self::SHAPE
    }
}
