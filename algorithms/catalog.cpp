#include "algorithms/catalog.h"

#include "recipe/catalog.h"

namespace tutti {

using enum KeyType;

namespace {

Entry alibi() {
  return {"alibi",
          "Attention biased by distance, no position embeddings, short training sequences; Composer's Alibi.",
          {Key{"max_sequence_length", kInteger, "", "longest sequence of evaluations and generated texts"}
               .at_least(1)
               .at_most(1e9),
           Key{"train_sequence_length_scaling", kNumber, "0.25",
               "length of training sequences, as a part of the data's; 1 leaves batches as they are"}
               .more_than(0)
               .at_most(1)}};
}

Entry gated_linear_units() {
  return {"gated_linear_units",
          "Gated feed-forward blocks in BERT; Composer's GatedLinearUnits.",
          {Key{"act_fn", kText, "none", "of the gates; default: that of the blocks before"}.one_of(
               {"gelu", "gelu_new", "relu", "silu", "tanh"}),
           {"gated_layer_bias", kBoolean, "false", "the gated layer has a bias"},
           {"non_gated_layer_bias", kBoolean, "false", "the other layer has a bias"}}};
}

}  // namespace

Catalog algorithm_catalog() {
  return {
      .section = "algorithms",
      .noun = "algorithm",
      .doc =
          "Algorithms that change the data, the model or the training loop. Names and meanings are "
          "Composer's.",
      .entries = {{"gradient_clipping",
                   "Limits the size of gradients; Composer's GradientClipping.",
                   {Key{"clipping_type", kText, "",
                        "norm: the norm of all gradients together; value: each number; adaptive: the norm of "
                        "each unit, "
                        "relative to the norm of its weights"}
                        .one_of({"norm", "value", "adaptive"}),
                    Key{"clipping_threshold", kNumber, "",
                        "the largest norm or value; adaptive: the largest ratio to the norm of the weights"}
                        .more_than(0)}},
                  alibi(),
                  gated_linear_units(),
                  plugin_entry("algorithm")},
      .repeated = true};
}

}  // namespace tutti
