//! Arguments of calls: values, or references whose values the callee gets.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use cohabit_application_core::{CallError, ObjectId};
use serde::de::value::Error as PlainError;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::process::{ArrivedArguments, CarriedHandles, FetchedValue, FetchedValues, Hold, MemberProcess};
use crate::reference::Ref;
use crate::values::{decode, note_need};

/// What errors call them.
const ARGUMENTS: &str = "the arguments";

/// An argument of a call of a task, a method or a constructor with a parameter of type `T`.
///
/// It comes from a `T`, or from a [`Ref`] of one: then the code gets the value, and is called when the value
/// is known. If there will be none, the call fails with [`Error::Dependency`](crate::Error::Dependency). A
/// parameter of type `Vec<T>` takes a `Vec<Ref<T>>`, too. A parameter whose type is itself a `Ref` gets the
/// reference, at once.
///
/// ```no_run
/// # use cohabit::{Ref, Result};
/// #[cohabit::task]
/// fn load(path: String) -> Result<Vec<f32>> {
///     # let _ = path;
///     # Ok(Vec::new())
/// }
///
/// #[cohabit::task]
/// fn sum(numbers: Vec<f32>) -> f32 {
///     numbers.iter().sum()
/// }
///
/// #[cohabit::task]
/// fn total(sums: Vec<f32>) -> f32 {
///     sums.iter().sum()
/// }
///
/// # async fn print() -> Result<()> {
/// let numbers: Ref<Vec<f32>> = load::remote("numbers").start().await?;
/// let first = sum::remote(&numbers).start().await?;
/// let second = sum::remote(vec![1.0, 2.0]).start().await?;
/// println!("{}", total::remote(vec![first, second]).await?);
/// # Ok(())
/// # }
/// ```
pub struct Arg<T>(Argument<T>);

enum Argument<T> {
    Value(T),
    Reference(Arc<Hold>, ObjectId),
    References(Vec<(Arc<Hold>, ObjectId)>),
}

/// An argument on its way.
#[derive(Serialize)]
enum SentArgument<'a, T> {
    Value(&'a T),
    Reference(ObjectId),
    References(Vec<ObjectId>),
}

/// An argument as it arrives.
#[derive(Deserialize)]
enum ReceivedArgument<T> {
    Value(T),
    Reference(ObjectId),
    /// The elements of a value that is a sequence.
    References(Vec<ObjectId>),
}

impl<T> From<T> for Arg<T> {
    fn from(value: T) -> Arg<T> {
        Arg(Argument::Value(value))
    }
}

impl<T> From<Ref<T>> for Arg<T> {
    fn from(reference: Ref<T>) -> Arg<T> {
        Arg::from(&reference)
    }
}

impl<T> From<&Ref<T>> for Arg<T> {
    fn from(reference: &Ref<T>) -> Arg<T> {
        let (hold, object) = reference.parts();
        Arg(Argument::Reference(hold, object))
    }
}

impl<T> From<Vec<Ref<T>>> for Arg<Vec<T>> {
    fn from(references: Vec<Ref<T>>) -> Arg<Vec<T>> {
        Arg(Argument::References(references.iter().map(Ref::parts).collect()))
    }
}

impl From<&str> for Arg<String> {
    fn from(text: &str) -> Arg<String> {
        Arg(Argument::Value(text.to_owned()))
    }
}

impl<T: Serialize> Serialize for Arg<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let need = |(hold, object): &(Arc<Hold>, ObjectId)| note_need(hold, *object).map(|()| *object);
        match &self.0 {
            Argument::Value(value) => SentArgument::Value(value),
            Argument::Reference(hold, object) => {
                note_need(hold, *object).map_err(S::Error::custom)?;
                SentArgument::Reference(*object)
            }
            Argument::References(all) => {
                let objects: Result<Vec<ObjectId>, String> = all.iter().map(need).collect();
                SentArgument::References(objects.map_err(S::Error::custom)?)
            }
        }
        .serialize(serializer)
    }
}

impl<T> fmt::Debug for Arg<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Argument::Value(_) => f.write_str("a value"),
            Argument::Reference(hold, _) => hold.fmt(f),
            Argument::References(all) => f.debug_list().entries(all.iter().map(|(hold, _)| hold)).finish(),
        }
    }
}

/// Arguments in the process that was called: their bytes, and the values of references in them.
#[derive(Debug)]
pub struct CallArguments {
    bytes: Bytes,
    fetched: FetchedValues,
    _carried: CarriedHandles,
}

impl CallArguments {
    /// Those whose values are known and small, or that have no references.
    ///
    /// # Errors
    /// They themselves, if they have to be fetched.
    pub(crate) fn at_once(
        process: &Arc<MemberProcess>,
        arrived: ArrivedArguments,
    ) -> Result<CallArguments, ArrivedArguments> {
        if !arrived.needs.is_empty() {
            return Err(arrived);
        }
        let ArrivedArguments { bytes, needs: _, carries } = arrived;
        let carried = CarriedHandles::new(process, carries);
        Ok(CallArguments { bytes, fetched: FetchedValues::new(), _carried: carried })
    }

    /// Gets the values of references in arguments.
    ///
    /// # Errors
    /// If one has no value, or cannot be read.
    pub(crate) async fn fetch(
        process: &Arc<MemberProcess>,
        arrived: ArrivedArguments,
    ) -> Result<CallArguments, CallError> {
        let ArrivedArguments { bytes, needs, carries } = arrived;
        // Given back wherever this ends.
        let carried = CarriedHandles::new(process, carries);
        let fetched = process.fetch_all(needs).await?;
        Ok(CallArguments { bytes, fetched, _carried: carried })
    }

    fn received<R: DeserializeOwned>(&self) -> Result<R, CallError> {
        decode(&self.bytes, ARGUMENTS).map_err(CallError::Refused)
    }

    fn value<T: DeserializeOwned>(&self, received: ReceivedArgument<T>) -> Result<T, CallError> {
        match received {
            ReceivedArgument::Value(value) => Ok(value),
            ReceivedArgument::Reference(object) => self.fetched(object)?.decode(ARGUMENTS),
            ReceivedArgument::References(objects) => {
                let values = objects.into_iter().map(|object| self.fetched(object));
                let values = values.collect::<Result<Vec<&FetchedValue>, CallError>>()?;
                T::deserialize(FetchedSequence { values: values.into_iter() })
                    .map_err(|error| CallError::Refused(format!("{ARGUMENTS}: {error}")))
            }
        }
    }

    fn fetched(&self, object: ObjectId) -> Result<&FetchedValue, CallError> {
        let missing = || CallError::Refused(format!("{ARGUMENTS}: object {object} did not come with them"));
        self.fetched.get(&object).ok_or_else(missing)
    }
}

/// The arguments of a method, a task or a constructor: `A` is a tuple of [`Arg`].
///
/// # Errors
/// If the bytes are none, or the value of a reference is none of its type.
pub fn decode_arguments<A: ArgumentTuple>(arguments: &CallArguments) -> Result<A::Values, CallError> {
    A::decode(arguments)
}

/// A tuple of [`Arg`].
pub trait ArgumentTuple {
    /// The tuple of their values.
    type Values;

    /// The values of these arguments.
    ///
    /// # Errors
    /// If they have none.
    fn decode(arguments: &CallArguments) -> Result<Self::Values, CallError>;
}

/// Implements it for tuples of so many arguments, and of fewer.
macro_rules! argument_tuples {
    () => {
        argument_tuples!(@one);
    };
    ($first:ident $value:ident $($rest:ident)*) => {
        argument_tuples!(@one $first $value $($rest)*);
        argument_tuples!($($rest)*);
    };
    (@one $($of:ident $value:ident)*) => {
        impl<$($of: DeserializeOwned),*> ArgumentTuple for ($(Arg<$of>,)*) {
            type Values = ($($of,)*);

            fn decode(arguments: &CallArguments) -> Result<Self::Values, CallError> {
                let ($($value,)*) = arguments.received::<($(ReceivedArgument<$of>,)*)>()?;
                Ok(($(arguments.value($value)?,)*))
            }
        }
    };
}
argument_tuples!(A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p);

/// Values that become one sequence.
struct FetchedSequence<'a> {
    values: std::vec::IntoIter<&'a FetchedValue>,
}

impl<'de> Deserializer<'de> for FetchedSequence<'de> {
    type Error = PlainError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_seq(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> SeqAccess<'de> for FetchedSequence<'de> {
    type Error = PlainError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, PlainError> {
        let Some(value) = self.values.next() else { return Ok(None) };
        value.decode_seed(seed, "an element").map(Some).map_err(PlainError::custom)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}
