//! References of values: of calls that were started, and of objects that were put.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use cohabit_application_core::{CallError, HeldId, ObjectId};
use futures::future::BoxFuture;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::process::{FetchedValue, Hold, MemberProcess};
use crate::values::{EncodedValue, OutgoingValue, VALUE, encode_value, held, note};

/// A reference of a value: of a call that was started, or of an object that was [put](crate::put).
///
/// Awaiting it gives the value; [`Ref::get`] reads it and keeps the reference. It can be cloned, and passed
/// to other processes, in arguments, values and objects: the value lives as long as any process of the
/// application has a reference of it, also when its maker has ended. As an argument it stands for its value,
/// see [`Arg`](crate::Arg).
///
/// When the last reference of a call that has not ended is dropped, the call is cancelled with all that it
/// called: it never starts, or ends at its next await. [`Ref::detach`] lets it go on.
///
/// ```no_run
/// # use cohabit::Result;
/// # #[cohabit::task]
/// # fn load(path: String) -> Result<Vec<f32>> { let _ = path; Ok(Vec::new()) }
/// # async fn print() -> Result<()> {
/// let numbers = load::remote("numbers").start().await?;
/// println!("{} numbers", numbers.get().await?.len());
/// println!("{:?}", numbers.await?);
/// # Ok(())
/// # }
/// ```
#[must_use = "a reference that is dropped may cancel its call"]
pub struct Ref<T> {
    hold: Arc<Hold>,
    object: ObjectId,
    /// The value that is being awaited. Only whoever has the reference alone uses it: the mutex makes the
    /// type `Sync`.
    fetching: Mutex<Option<Fetching>>,
    value: PhantomData<fn() -> T>,
}

type Fetching = BoxFuture<'static, Result<FetchedValue, CallError>>;

/// Puts a value into the application: what many tasks and actors are to read, or what is too large for
/// arguments.
///
/// A value of up to 64 KiB stays with its reference. A larger one is written into shared memory of the node
/// once, and every process there reads it in place; a [`Buffer`](crate::Buffer) in it is not even copied. It
/// is freed when its last reference is dropped.
///
/// ```no_run
/// use cohabit::{Buffer, Ref, Result};
///
/// #[cohabit::task]
/// fn part(weights: Buffer<f32>, from: usize) -> f32 {
///     weights[from..from + 1_000].iter().sum()
/// }
///
/// # async fn sum() -> Result<f32> {
/// let weights: Ref<Buffer<f32>> = cohabit::put(&Buffer::from(vec![0.5; 1_000_000])).await?;
/// let parts = (0..1_000).map(|number| part::remote(&weights, number * 1_000));
/// Ok(futures::future::try_join_all(parts).await?.iter().sum())
/// # }
/// ```
///
/// # Errors
/// [`Error::Refused`] if the value cannot be encoded, or this program runs in no application;
/// [`Error::StoreFull`] if the node had no room for it within 30 s.
pub async fn put<T: Serialize>(value: &T) -> Result<Ref<T>> {
    let process = MemberProcess::current()?;
    match encode_value(value, "the value").map_err(Error::Refused)? {
        OutgoingValue::Inline(EncodedValue { bytes, holds }) => {
            let object = process.with(|state| state.keep_inline(bytes, held(&holds)));
            Ok(Ref::new(Hold::held_already(process, HeldId::Object(object)), object))
        }
        OutgoingValue::Large(writer, holds) => {
            let stored = process.store_value(writer, holds, None).await;
            let (stored, hold) = stored.map_err(Error::of_call)?;
            Ok(Ref::new(hold, stored.object))
        }
    }
}

impl<T> Ref<T> {
    pub(crate) const fn new(hold: Arc<Hold>, object: ObjectId) -> Ref<T> {
        Ref { hold, object, fetching: Mutex::new(None), value: PhantomData }
    }

    /// What it holds, and its name.
    pub(crate) fn parts(&self) -> (Arc<Hold>, ObjectId) {
        (Arc::clone(&self.hold), self.object)
    }

    /// Gives the reference up, and lets its call go on when nobody has another one.
    pub fn detach(self) {
        self.hold.process().with(|state| state.detach_reference(self.object));
    }
}

impl<T: DeserializeOwned> Ref<T> {
    /// The value, as soon as it is known. The reference stays.
    ///
    /// Each call decodes it anew; the elements of a [`Buffer`](crate::Buffer) in a large value are in shared
    /// memory and are the same each time.
    ///
    /// # Errors
    /// That of the call; [`Error::ObjectLost`] if the value is nowhere any more; [`Error::StoreFull`] if it
    /// is on disk and there was no room for it in memory; [`Error::Refused`] if it is no `T`.
    pub async fn get(&self) -> Result<T> {
        read(fetch(Arc::clone(&self.hold), self.object).await)
    }
}

/// The bytes of the value, which is held until then.
async fn fetch(hold: Arc<Hold>, object: ObjectId) -> Result<FetchedValue, CallError> {
    hold.process().fetch(object).await
}

fn read<T: DeserializeOwned>(fetched: Result<FetchedValue, CallError>) -> Result<T> {
    fetched.and_then(|fetched| fetched.decode(VALUE)).map_err(Error::of_call)
}

impl<T: DeserializeOwned> Future for Ref<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let Ref { hold, object, fetching, .. } = &mut *self;
        let fetching = fetching.get_mut().unwrap_or_else(PoisonError::into_inner);
        let fetch = fetching.get_or_insert_with(|| Box::pin(fetch(Arc::clone(hold), *object)));
        let fetched = ready!(fetch.as_mut().poll(context));
        *fetching = None;
        Poll::Ready(read(fetched))
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Ref<T> {
        Ref::new(Arc::clone(&self.hold), self.object)
    }
}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reference of {:?}", self.hold)
    }
}

impl<T> Serialize for Ref<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        note(&self.hold).map_err(S::Error::custom)?;
        (std::any::type_name::<T>(), self.object).serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Ref<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ref<T>, D::Error> {
        let (of, object) = <(String, ObjectId)>::deserialize(deserializer)?;
        let expected = std::any::type_name::<T>();
        if of != expected {
            return Err(D::Error::custom(format!("this is a reference of a {of}, and not of a {expected}")));
        }
        let process = MemberProcess::current().map_err(D::Error::custom)?;
        let hold = Hold::one_more(process, HeldId::Object(object)).ok_or_else(|| {
            D::Error::custom(format!(
                "this process holds no reference of object {object}: references cannot be stored, and end \
                 with their application"
            ))
        })?;
        Ok(Ref::new(hold, object))
    }
}
