//! What stands in parentheses after `actor` and `task`: what its process claims, and its limits.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, Meta, Result, Token};

/// The keys that both attributes have.
const CLAIM_KEYS: &str = "gpus, gpu_memory, cpus, memory, enforced, exclusive";

/// What the job of an actor or of tasks claims.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ClaimOptions {
    /// In thousandths of a GPU.
    pub(crate) gpus: u32,
    /// Bytes on each GPU.
    pub(crate) gpu_memory: Option<u64>,
    pub(crate) cpus: u32,
    /// Bytes.
    pub(crate) memory: u64,
    pub(crate) enforced: bool,
    pub(crate) exclusive: bool,
}

/// The options of an actor, with their defaults.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ActorAttribute {
    pub(crate) claims: ClaimOptions,
    pub(crate) restarts: u32,
    pub(crate) concurrency: Option<u32>,
}

/// The options of a task, with their defaults.
#[derive(Debug, PartialEq)]
pub(crate) struct TaskAttribute {
    pub(crate) claims: ClaimOptions,
    pub(crate) retries: u32,
    pub(crate) retry_errors: bool,
}

/// How often a task is sent again, unless it says otherwise.
const DEFAULT_RETRIES: u32 = 3;

/// What stands in parentheses after one of the attributes.
pub(crate) trait Options: Default {
    /// Whose they are, for people.
    const OWNER: &'static str;
    /// The keys beside those of the claims.
    const KEYS: &'static str;

    fn claims(&mut self) -> &mut ClaimOptions;

    /// Whether it is one of these keys, which is set then.
    fn set(&mut self, key: &str, meta: &Meta) -> Result<bool>;

    fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for meta in Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute)? {
            let key = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
            if seen.contains(&key) {
                return Err(Error::new(meta.span(), format!("`{key}` is given twice: keep one of them")));
            }
            if !options.claims().set(&key, &meta)? && !options.set(&key, &meta)? {
                let (owner, keys) = (Self::OWNER, Self::KEYS);
                let text = format!("{owner} has no option `{key}`: use {CLAIM_KEYS}, {keys}");
                return Err(Error::new(meta.span(), text));
            }
            seen.push(key);
        }
        if options.claims().enforced && options.claims().exclusive {
            let text =
                "`exclusive` lets nobody share the GPU, so there is nothing to enforce: remove `enforced`";
            return Err(Error::new(proc_macro2::Span::call_site(), text));
        }
        Ok(options)
    }
}

impl ClaimOptions {
    fn set(&mut self, key: &str, meta: &Meta) -> Result<bool> {
        match key {
            "gpus" => self.gpus = gpus(meta)?,
            "gpu_memory" => self.gpu_memory = Some(bytes(meta)?),
            "cpus" => self.cpus = whole(meta, 0)?,
            "memory" => self.memory = bytes(meta)?,
            "enforced" => self.enforced = flag(meta)?,
            "exclusive" => self.exclusive = flag(meta)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Options for ActorAttribute {
    const OWNER: &'static str = "an actor";
    const KEYS: &'static str = "restarts, concurrency";

    fn claims(&mut self) -> &mut ClaimOptions {
        &mut self.claims
    }

    fn set(&mut self, key: &str, meta: &Meta) -> Result<bool> {
        match key {
            "restarts" => self.restarts = whole(meta, 0)?,
            "concurrency" => self.concurrency = Some(whole(meta, 1)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Default for TaskAttribute {
    fn default() -> TaskAttribute {
        let claims = ClaimOptions { cpus: 1, ..ClaimOptions::default() };
        TaskAttribute { claims, retries: DEFAULT_RETRIES, retry_errors: false }
    }
}

impl Options for TaskAttribute {
    const OWNER: &'static str = "a task";
    const KEYS: &'static str = "retries, retry_errors";

    fn claims(&mut self) -> &mut ClaimOptions {
        &mut self.claims
    }

    fn set(&mut self, key: &str, meta: &Meta) -> Result<bool> {
        match key {
            "retries" => self.retries = whole(meta, 0)?,
            "retry_errors" => self.retry_errors = flag(meta)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A literal after `=`.
fn literal<'a>(meta: &'a Meta, example: &str) -> Result<&'a Lit> {
    let expected = || {
        let key = meta.path().to_token_stream();
        Error::new(meta.span(), format!("`{key}` needs a literal value: write `{key} = {example}`"))
    };
    let Meta::NameValue(pair) = meta else { return Err(expected()) };
    match &pair.value {
        Expr::Lit(ExprLit { lit, .. }) => Ok(lit),
        _ => Err(expected()),
    }
}

fn flag(meta: &Meta) -> Result<bool> {
    match meta {
        Meta::Path(_) => Ok(true),
        Meta::List(_) | Meta::NameValue(_) => {
            let key = meta.path().to_token_stream();
            Err(Error::new(meta.span(), format!("`{key}` has no value: write `{key}` alone")))
        }
    }
}

/// A whole number of at least so much.
pub(crate) fn whole(meta: &Meta, least: u32) -> Result<u32> {
    let lit = literal(meta, "2")?;
    let number = match lit {
        Lit::Int(number) => number.base10_parse::<u32>().ok(),
        _ => None,
    };
    number.filter(|number| *number >= least).ok_or_else(|| {
        Error::new(lit.span(), format!("this has to be a whole number of at least {least}, such as 2"))
    })
}

/// Thousandths of a GPU.
fn gpus(meta: &Meta) -> Result<u32> {
    let lit = literal(meta, "0.5")?;
    let amount = match lit {
        Lit::Int(number) => number.base10_parse::<f64>().ok(),
        Lit::Float(number) => number.base10_parse::<f64>().ok(),
        _ => None,
    };
    let thousandths = amount.and_then(|amount| {
        let thousandths = (amount * 1_000.0).round();
        let is_share = amount < 1.0 && (1.0..1_000.0).contains(&thousandths);
        let is_whole = amount.fract() == 0.0 && (0.0..=4_000_000.0).contains(&amount);
        (is_share || is_whole).then_some(thousandths as u32)
    });
    thousandths.ok_or_else(|| {
        let text = "this is no number of GPUs: give whole GPUs (1, 4), a share of one (0.5) or none (0)";
        Error::new(lit.span(), text)
    })
}

/// `"8G"`, in binary units.
pub(crate) fn bytes(meta: &Meta) -> Result<u64> {
    let lit = literal(meta, "\"8G\"")?;
    let text = match lit {
        Lit::Str(text) => text.value().trim().to_ascii_uppercase(),
        _ => String::new(),
    };
    let bare = text.strip_suffix("IB").or_else(|| text.strip_suffix('B')).unwrap_or(&text);
    let units = [("T", 1_u64 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    let (digits, unit) =
        units.iter().find_map(|(unit, size)| Some((bare.strip_suffix(unit)?, *size))).unwrap_or((bare, 1));
    let is_plain = digits.chars().all(|it| it.is_ascii_digit() || it == '.');
    let amount = digits.parse::<f64>().ok().filter(|_| is_plain);
    amount.map(|amount| (amount * unit as f64).round() as u64).ok_or_else(|| {
        Error::new(lit.span(), "this is no amount of memory: write it as text with a unit, such as \"8G\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn options_are_read_in_thousandths_and_bytes() {
        let attribute = quote!(
            gpus = 0.25,
            gpu_memory = "8G",
            cpus = 1,
            memory = "1.5K",
            restarts = 3,
            concurrency = 4,
            enforced
        );
        let claims = ClaimOptions {
            gpus: 250,
            gpu_memory: Some(8 << 30),
            cpus: 1,
            memory: 1_536,
            enforced: true,
            exclusive: false,
        };
        let expected = ActorAttribute { claims, restarts: 3, concurrency: Some(4) };
        assert_eq!(ActorAttribute::parse(attribute).unwrap(), expected);
        assert_eq!(ActorAttribute::parse(quote!(gpus = 2)).unwrap().claims.gpus, 2_000);
        assert_eq!(ActorAttribute::parse(quote!()).unwrap(), ActorAttribute::default());
    }

    #[test]
    fn a_task_claims_a_core_and_is_sent_again_three_times() {
        let read = |attribute: TokenStream| TaskAttribute::parse(attribute).unwrap();
        let claims = ClaimOptions { cpus: 1, ..ClaimOptions::default() };
        assert_eq!(read(quote!()), TaskAttribute { claims, retries: 3, retry_errors: false });
        let claims = ClaimOptions { cpus: 2, exclusive: true, ..ClaimOptions::default() };
        let expected = TaskAttribute { claims, retries: 0, retry_errors: true };
        assert_eq!(read(quote!(cpus = 2, exclusive, retries = 0, retry_errors)), expected);
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        let refused = |attribute: TokenStream| ActorAttribute::parse(attribute).unwrap_err().to_string();
        assert!(refused(quote!(gpu = 1)).contains("no option `gpu`: use gpus, gpu_memory"));
        assert!(refused(quote!(gpus = 1, gpus = 2)).contains("twice"));
        assert!(refused(quote!(gpus = 1.5)).contains("a share of one (0.5)"));
        assert!(refused(quote!(gpus = -1)).contains("no number of GPUs"));
        assert!(refused(quote!(gpus = 0.0001)).contains("no number of GPUs"));
        assert!(refused(quote!(gpus = 0.9999)).contains("no number of GPUs"));
        assert!(refused(quote!(memory = 8)).contains("\"8G\""));
        assert!(refused(quote!(memory = "8X")).contains("\"8G\""));
        assert!(refused(quote!(concurrency = 0)).contains("at least 1"));
        assert!(refused(quote!(enforced = true)).contains("write `enforced` alone"));
        assert!(refused(quote!(cpus)).contains("write `cpus = 2`"));
        assert!(refused(quote!(enforced, exclusive)).contains("remove `enforced`"));
        let text = TaskAttribute::parse(quote!(restarts = 1)).unwrap_err().to_string();
        assert!(
            text.starts_with("a task has no option `restarts`: use gpus") && text.ends_with("retry_errors")
        );
    }
}
