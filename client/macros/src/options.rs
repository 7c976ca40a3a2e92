//! What stands in parentheses after `actor`: the demand and the limits of an actor.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, Meta, Result, Token};

const KEYS: &str = "gpus, gpu_memory, cpus, memory, restarts, concurrency, enforced, exclusive";

/// The options of an actor, with their defaults.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// In thousandths of a GPU.
    pub(crate) gpus: u32,
    /// Bytes on each GPU.
    pub(crate) gpu_memory: Option<u64>,
    pub(crate) cpus: u32,
    /// Bytes.
    pub(crate) memory: u64,
    pub(crate) restarts: u32,
    pub(crate) concurrency: Option<u32>,
    pub(crate) enforced: bool,
    pub(crate) exclusive: bool,
}

impl Options {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Options> {
        let mut options = Options::default();
        let mut seen: Vec<String> = Vec::new();
        for meta in Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute)? {
            let key = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
            if seen.contains(&key) {
                return Err(Error::new(meta.span(), format!("`{key}` is given twice: keep one of them")));
            }
            options.set(&key, &meta)?;
            seen.push(key);
        }
        if options.enforced && options.exclusive {
            let text =
                "`exclusive` lets nobody share the GPU, so there is nothing to enforce: remove `enforced`";
            return Err(Error::new(proc_macro2::Span::call_site(), text));
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, meta: &Meta) -> Result<()> {
        match key {
            "gpus" => self.gpus = gpus(meta)?,
            "gpu_memory" => self.gpu_memory = Some(bytes(meta)?),
            "cpus" => self.cpus = whole(meta, 0)?,
            "memory" => self.memory = bytes(meta)?,
            "restarts" => self.restarts = whole(meta, 0)?,
            "concurrency" => self.concurrency = Some(whole(meta, 1)?),
            "enforced" => self.enforced = flag(meta)?,
            "exclusive" => self.exclusive = flag(meta)?,
            _ => {
                let text = format!("an actor has no option `{key}`: use {KEYS}");
                return Err(Error::new(meta.span(), text));
            }
        }
        Ok(())
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
fn bytes(meta: &Meta) -> Result<u64> {
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
        let expected = Options {
            gpus: 250,
            gpu_memory: Some(8 << 30),
            cpus: 1,
            memory: 1_536,
            restarts: 3,
            concurrency: Some(4),
            enforced: true,
            exclusive: false,
        };
        assert_eq!(Options::parse(attribute).unwrap(), expected);
        assert_eq!(Options::parse(quote!(gpus = 2)).unwrap().gpus, 2_000);
        assert_eq!(Options::parse(quote!()).unwrap(), Options::default());
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        let refused = |attribute: TokenStream| Options::parse(attribute).unwrap_err().to_string();
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
    }
}
