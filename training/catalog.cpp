#include "training/catalog.h"

namespace tutti {

using enum KeyType;

Catalog run_catalog() {
  return {
      .section = "",
      .noun = "",
      .doc = "The whole run; these keys stand above the first section.",
      .keys = {
          {"run_name", kText, "run", "names the run folder and the logs"},
          Key{"seed", kInteger, "none", "seed of all random numbers; from the clock when absent"}.at_least(0),
      }};
}

Catalog train_catalog() {
  return {
      .section = "train",
      .noun = "",
      .doc = "The training loop.",
      .keys =
          {
              Key{"max_duration", kTime, "", "how long to train"}.in_units(
                  {"iter", "ep", "ba", "sp", "tok", "sec"}),
              Key{"iteration_length", kTime, "none",
                  "epochs per iteration (iter); when absent, one iteration is the whole training"}
                  .in_units({"ep"})
                  .at_least(1),
              {"eval_interval", kTime, "1ep",
               "how often to evaluate on [data.eval]; it also happens at the end"},
              Key{"grad_accum", kIntegerOrSteps, "none",
                  "microbatches per step on each rank, 1 when absent; auto: as few as memory allows"}
                  .at_least(1)
                  .at_most(1e6)
                  .or_word("auto"),
              Key{"device_train_microbatch_size", kInteger, "none",
                  "samples per microbatch on each rank, instead of grad_accum; auto: grad_accum = \"auto\""}
                  .at_least(1)
                  .at_most(1e9)
                  .or_word("auto"),
              Key{"grad_accum_grow_interval", kTime, "0ba",
                  "with auto: time without running out of memory before half as many are tried; 0ba: never"}
                  .in_units({"ep", "ba", "sp", "tok", "sec"}),
              Key{"scale_schedule_ratio", kNumber, "1",
                  "scales max_duration and all times of the schedule; 0.5: half as long"}
                  .more_than(0)
                  .at_most(1e6),
              Key{"progress_interval", kTime, "none",
                  "how often progress is printed without a terminal; every 2 seconds when absent"}
                  .in_units({"ba"})
                  .at_least(1),
              {"deterministic_mode", kBoolean, "false", "fail if a libtorch kernel is not deterministic"},
              {"cuda_graphs", kBoolean, "false",
               "launch forward and backward of a microbatch with one call: for small models, on one rank "
               "with a "
               "GPU, where no listener acts between"},
              {"progress_bar", kBoolean, "true", "show progress on standard output"},
              {"log_to_console", kBoolean, "false", "print metrics, like [[loggers]] kind = \"console\""},
              Key{"console_log_interval", kTime, "1ba", "how often log_to_console prints"}.more_than(0),
              Key{"console_stream", kText, "stderr", "where log_to_console prints"}.one_of(
                  {"stdout", "stderr"}),
              {"log_traces", kBoolean, "false", "log which algorithms ran at which event"},
              {"auto_log_hparams", kBoolean, "false", "log the recipe's values as hyperparameters"},
              Key{"precision", kText, "fp32",
                  "number format; amp_fp16 and amp_bf16 use 16 bits where possible, by autocast"}
                  .one_of({"fp32", "amp_fp16", "amp_bf16", "amp_fp8"})
                  .also_written({{"amp", "amp_fp16"}}),
              Key{"hang_timeout", kTime, "60sec",
                  "a rank that is silent for this long is considered lost, and the run ends"}
                  .also_named({"dist_timeout"})
                  .in_units({"sec"})
                  .at_least(1)
                  .at_most(1e6),
          },
      .alternatives = {{.keys = {"grad_accum", "device_train_microbatch_size"}}}};
}

Catalog precision_catalog() {
  const auto dtype = [](const char* name, const char* doc) {
    return Key{name, kText, "none", doc}.one_of({"fp32", "bf16"});
  };
  return {.section = "precision",
          .noun = "",
          .doc = "Number formats other than those of [train] precision, and loss scaling of amp_fp16.",
          .keys = {
              dtype("param_dtype", "of parameters and optimizer state; fp32 when absent"),
              dtype("reduce_dtype", "of the sum of gradients over ranks; that of parameters when absent"),
              dtype("buffer_dtype", "of buffers such as running statistics; fp32 when absent"),
              Key{"init_scale", kNumber, "65536", "initial scale of losses"}.more_than(0).at_most(1e30),
              Key{"growth_factor", kNumber, "2", "growth of the scale after growth_interval steps"}
                  .at_least(1)
                  .at_most(1e6),
              Key{"backoff_factor", kNumber, "0.5",
                  "reduction of the scale if a gradient overflows; that step is skipped"}
                  .more_than(0)
                  .at_most(1),
              Key{"growth_interval", kInteger, "2000", "steps without overflow before the scale grows"}
                  .at_least(1)
                  .at_most(1e9),
          }};
}

Catalog compat_catalog() {
  return {.section = "compat",
          .noun = "",
          .doc = "Composer's behaviour where tutti's differs; see docs/compat.md.",
          .keys = {{"composer", kBoolean, "false",
                    "learning rates lag by one batch, metrics are means over batches"}}};
}

}  // namespace tutti
