//! Support for stored shapes: types that describe the JSON of another type, field by field.
//!
//! A stored shape is a `#[serde(remote = "...")]` type. Serde generates its conversion from and to the
//! in-memory type, without a copy. If the in-memory type gains, loses or renames a field or a variant, the
//! shape no longer compiles. The fix is made in the shape, so the stored names stay the same.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::{Deserializer, Serializer};
use serde_with::{DeserializeAs, SerializeAs};

/// Lets a shape stand for its type inside `As::<...>`, so that it can be nested in `Option`, `Vec` and maps.
macro_rules! shape_of {
    ($($shape:ident => $type:ty),+ $(,)?) => {$(
        impl serde_with::SerializeAs<$type> for $shape {
            fn serialize_as<S: serde::Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(value, serializer)
            }
        }

        impl<'de> serde_with::DeserializeAs<'de, $type> for $shape {
            fn deserialize_as<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                Self::deserialize(deserializer)
            }
        }
    )+};
}
pub(crate) use shape_of;

/// For `#[serde(with = "CowOf::<Shape>")]` on a `Cow<'_, Type>`: encodes borrowed data, decodes owned data.
pub(crate) struct CowOf<Shape>(PhantomData<Shape>);

impl<Shape> CowOf<Shape> {
    #[expect(clippy::ptr_arg, reason = "serde passes a reference to the field")]
    pub(crate) fn serialize<T, S>(value: &Cow<'_, T>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Clone,
        Shape: SerializeAs<T>,
        S: Serializer,
    {
        Shape::serialize_as(value, serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Cow<'static, T>, D::Error>
    where
        T: Clone,
        Shape: DeserializeAs<'de, T>,
        D: Deserializer<'de>,
    {
        Shape::deserialize_as(deserializer).map(Cow::Owned)
    }
}
