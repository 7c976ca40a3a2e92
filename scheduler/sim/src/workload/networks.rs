//! The networks that simulated jobs train: five well-known ones, layer by layer, so that every number follows
//! from published shapes.
//!
//! | network | sample | parameters | forward | batch of a replica |
//! |---|---|---|---|---|
//! | ResNet-152 | 224 x 224 image | 60 M | 23 G | 32 |
//! | VGG-19 | 224 x 224 image | 144 M | 39 G | 32 |
//! | ViT-B/16 | 224 x 224 image | 86 M | 35 G | 64 |
//! | BERT-large | 512 tokens | 334 M | 367 G | 8 |
//! | GPT-2 medium | 1,024 tokens | 355 M | 827 G | 4 |

use cohabit_types::ModelFamily;

use super::layers::{Layer, convolution, dense, embedding, tied_head, transformer_block};

/// A network and how it is usually trained.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KnownNetwork {
    pub(super) name: &'static str,
    pub(super) family: ModelFamily,
    /// Batch size of one replica.
    pub(super) batch: u64,
    pub(super) layers: Vec<Layer>,
}

/// All known networks.
pub(super) fn networks() -> Vec<KnownNetwork> {
    let network = |name, family, batch, layers| KnownNetwork { name, family, batch, layers };
    vec![
        network("ResNet-152", ModelFamily::Cnn, 32, resnet_152()),
        network("VGG-19", ModelFamily::Cnn, 32, vgg_19()),
        network("ViT-B/16", ModelFamily::Transformer, 64, vit_b_16()),
        network("BERT-large", ModelFamily::Transformer, 8, bert_large()),
        network("GPT-2 medium", ModelFamily::Transformer, 4, gpt_2_medium()),
    ]
}

/// Four groups of 3, 8, 36 and 3 bottleneck blocks.
fn resnet_152() -> Vec<Layer> {
    let mut layers = vec![convolution(3, 64, 7, 112).pooled(64, 56)];
    let mut from = 64;
    for (blocks, middle, side) in [(3, 64, 56), (8, 128, 28), (36, 256, 14), (3, 512, 7)] {
        for block in 0..blocks {
            let entry_side = if block == 0 && side < 56 { 2 * side } else { side };
            layers.push(bottleneck(from, middle, entry_side, side));
            from = 4 * middle;
        }
    }
    layers.push(dense(2_048, 1_000));
    layers
}

/// A bottleneck block of 1 x 1, 3 x 3 and 1 x 1 convolutions; the first of a group also projects its input to
/// the new shape.
fn bottleneck(from: u64, middle: u64, entry_side: u64, side: u64) -> Layer {
    let to = 4 * middle;
    let shortcut = if from == to { Layer::default() } else { convolution(from, to, 1, side) };
    let narrow = convolution(from, middle, 1, entry_side);
    shortcut + narrow + convolution(middle, middle, 3, side) + convolution(middle, to, 1, side)
}

/// Groups of 3 x 3 convolutions, halved in side after each, and three dense layers with most of the weights.
fn vgg_19() -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut from = 3;
    for (convolutions, to, side) in [(2, 64, 224), (2, 128, 112), (4, 256, 56), (4, 512, 28), (4, 512, 14)] {
        for number in 1..=convolutions {
            let layer = convolution(from, to, 3, side);
            layers.push(if number == convolutions { layer.pooled(to, side / 2) } else { layer });
            from = to;
        }
    }
    layers.extend([dense(512 * 7 * 7, 4_096), dense(4_096, 4_096), dense(4_096, 1_000)]);
    layers
}

/// 196 patches of 16 x 16 and one class token.
fn vit_b_16() -> Vec<Layer> {
    let mut layers = vec![convolution(3, 768, 16, 14)];
    layers.extend([transformer_block(768, 197); 12]);
    layers.push(dense(768, 1_000));
    layers
}

fn bert_large() -> Vec<Layer> {
    language_model(30_522, 512, 24, 1_024)
}

fn gpt_2_medium() -> Vec<Layer> {
    language_model(50_257, 1_024, 24, 1_024)
}

fn language_model(words: u64, tokens: u64, blocks: usize, width: u64) -> Vec<Layer> {
    let mut layers = vec![embedding(words, tokens, width, tokens)];
    layers.extend(vec![transformer_block(width, tokens); blocks]);
    layers.push(tied_head(words, width, tokens));
    layers
}

impl KnownNetwork {
    /// The network with this name, ignoring case.
    pub(super) fn by_name<'a>(name: &str, networks: &'a [KnownNetwork]) -> Option<&'a KnownNetwork> {
        networks.iter().find(|network| network.name.eq_ignore_ascii_case(name))
    }

    /// All layers together.
    pub(super) fn whole(&self) -> Layer {
        self.layers.iter().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_published_networks() {
        // Parameters in millions and forward operations in billions, from torchvision and the papers.
        let published = [
            ("ResNet-152", 60.19, 2.0 * 11.51),
            ("VGG-19", 143.67, 2.0 * 19.63),
            ("ViT-B/16", 86.57, 2.0 * 17.56),
            ("BERT-large", 335.0, 367.0),
            ("GPT-2 medium", 354.8, 827.0),
        ];
        let networks = networks();
        for (name, parameters, operations) in published {
            let whole = KnownNetwork::by_name(&name.to_lowercase(), &networks).unwrap().whole();
            let near = |is: f64, should: f64| (is / 1e6 / should - 1.0).abs() < 0.015;
            assert!(near(whole.parameters, parameters), "{name}: {} parameters", whole.parameters);
            assert!(near(whole.forward / 1e3, operations), "{name}: {} operations", whole.forward);
        }
        assert_eq!(networks.len(), published.len());
        assert_eq!(KnownNetwork::by_name("AlexNet", &networks), None);
    }
}
