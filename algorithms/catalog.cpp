#include "algorithms/catalog.h"

#include "recipe/catalog.h"

namespace tutti {

namespace {

using enum KeyType;

Entry ema() {
  return {
      "ema",
      "Evaluates, predicts and exports with an exponential moving average of the weights; Composer's EMA.",
      {
          Key{"half_life", kTime, "none",
              "time after which a weight counts half in the average; 1000ba when smoothing is absent too"}
              .in_units({"ba", "ep"})
              .more_than(0),
          Key{"smoothing", kNumber, "none", "factor of the old average in an update, in place of half_life"}
              .at_least(0)
              .at_most(1),
          Key{"ema_start", kTime, "0.0dur", "when averaging begins"}.in_units({"dur", "ba", "ep"}),
          Key{"update_interval", kTime, "none",
              "time between updates; one unit of half_life when absent, or one batch"}
              .in_units({"ba", "ep"})
              .more_than(0),
      },
      "",
      {.composer = "EMA",
       .functions = {"compute_ema"},
       .header = "algorithms/loop/ema.h",
       .call = "compute_ema(weights, averages, 0.99);",
       .paper = "Polyak and Juditsky 1992",
       .models = "all",
       .effect = "a better model at evaluations, most where the learning rate is still large"}};
}

Entry gradient_clipping() {
  return {
      "gradient_clipping",
      "Limits the size of gradients; Composer's GradientClipping.",
      {Key{"clipping_type", kText, "",
           "norm: the norm of all gradients together; value: each number; adaptive: the norm of each unit, "
           "relative to the norm of its weights"}
           .one_of({"norm", "value", "adaptive"}),
       Key{"clipping_threshold", kNumber, "",
           "the largest norm or value; adaptive: the largest ratio to the norm of the weights"}
           .more_than(0)},
      "",
      {.composer = "GradientClipping",
       .functions = {"apply_gradient_clipping"},
       .header = "algorithms/loop/gradient_clipping.h",
       .call = "apply_gradient_clipping(views, ClippingType::kNorm, 1.0);",
       .paper = "Pascanu et al. 2013, arXiv:1211.5063; adaptive: Brock et al. 2021, arXiv:2102.06171",
       .models = "all",
       .effect = "no steps that ruin the weights, and larger learning rates",
       .example = "clipping_type = \"norm\"\nclipping_threshold = 1.0"}};
}

Entry sam() {
  return {"sam",
          "Takes gradients a little uphill, by a second pass over the batch, to find flat minima; Composer's "
          "SAM.",
          {
              Key{"rho", kNumber, "0.05", "length of the step uphill"}.more_than(0),
              Key{"epsilon", kNumber, "1e-12", "added to the norm of the gradients"}.at_least(0),
              Key{"interval", kInteger, "1", "steps from one second pass to the next"}.at_least(1),
          },
          "",
          {.composer = "SAM",
           .functions = {},
           .header = "algorithms/loop/sam.h",
           .call = "",
           .paper = "Foret et al. 2021, arXiv:2010.01412",
           .models = "all; most for images",
           .effect = "better generalisation for twice the time a step, or less with a larger interval"}};
}

Entry swa() {
  return {
      "swa",
      "Averages the weights of the last part of training; Composer's SWA.",
      {
          Key{"swa_start", kTime, "0.7dur", "when averaging begins"}.in_units({"dur", "ba", "ep"}),
          Key{"swa_end", kTime, "0.97dur",
              "from when on the averages are trained on; in the unit of swa_start, and later"}
              .in_units({"dur", "ba", "ep"}),
          Key{"update_interval", kTime, "1ep", "time between updates"}.in_units({"ba", "ep"}).more_than(0),
          Key{"schedule_swa_lr", kBoolean, "false", "move the learning rate to swa_lr while averaging"},
          Key{"anneal_strategy", kText, "linear", "how the learning rate moves"}.one_of({"linear", "cos"}),
          Key{"anneal_steps", kInteger, "10", "updates in which the learning rate moves"}.at_least(1),
          Key{"swa_lr", kNumber, "none", "the schedule's rate when averaging begins when absent"}.at_least(0),
      },
      "",
      {.composer = "SWA",
       .functions = {},
       .header = "algorithms/loop/swa.h",
       .call = "",
       .paper = "Izmailov et al. 2018, arXiv:1803.05407",
       .models = "all",
       .effect = "better generalisation at no cost a step"}};
}

}  // namespace

Catalog algorithm_catalog() {
  return {.section = "algorithms",
          .noun = "algorithm",
          .doc =
              "Algorithms that change the data, the model or the training loop. Names and meanings are "
              "Composer's.",
          .entries = {gradient_clipping(), ema(), sam(), swa(), plugin_entry("algorithm")},
          .repeated = true};
}

}  // namespace tutti
