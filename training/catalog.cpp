#include "training/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

}  // namespace

Catalog run_catalog() {
  return {
      .section = "",
      .noun = "",
      .doc = "The run as a whole; above the first section.",
      .keys = {
          {"run_name", kText, "run", "names the run folder and the logs"},
          Key{"seed", kInteger, "none", "of weights, order and every other draw; from the clock when absent"}
              .at_least(0),
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
                  "epochs of an iteration (iter); when absent, one holds the whole training"}
                  .in_units({"ep"})
                  .at_least(1),
              {"eval_interval", kTime, "1ep",
               "how often to evaluate on [data.eval]; it also happens at the end"},
              Key{"grad_accum", kIntegerOrSteps, "none",
                  "microbatches of a step on each rank, 1 when absent; auto: as many as memory needs"}
                  .at_least(1)
                  .at_most(1e6)
                  .or_word("auto"),
              Key{"device_train_microbatch_size", kInteger, "none",
                  "samples of a microbatch on each rank, in place of grad_accum; auto: grad_accum = \"auto\""}
                  .at_least(1)
                  .at_most(1e9)
                  .or_word("auto"),
              Key{"grad_accum_grow_interval", kTime, "0ba",
                  "with auto: after so long without running out of memory, half as many are tried; 0ba: "
                  "never"}
                  .in_units({"ep", "ba", "sp", "tok", "sec"}),
              Key{"scale_schedule_ratio", kNumber, "1",
                  "stretches max_duration and every time of the schedule; 0.5: half as long"}
                  .more_than(0)
                  .at_most(1e6),
              Key{"progress_interval", kTime, "none",
                  "how often progress is printed where that is no terminal; every 2 seconds when absent"}
                  .in_units({"ba"})
                  .at_least(1),
              {"deterministic_mode", kBoolean, "false",
               "a kernel of libtorch that may differ between runs is an error; contradicts "
               "[collectives] reduction = \"native\""},
              {"progress_bar", kBoolean, "true", "progress on standard output"},
              {"log_to_console", kBoolean, "false", "print metrics; as [[loggers]] kind = \"console\""},
              Key{"console_log_interval", kTime, "1ba", "how often log_to_console prints"}.more_than(0),
              Key{"console_stream", kText, "stderr", "where log_to_console prints"}.one_of(
                  {"stdout", "stderr"}),
              {"log_traces", kBoolean, "false", "log which algorithms ran at which event"},
              {"auto_log_hparams", kBoolean, "false", "log the recipe's values as hyperparameters"},
              Key{"precision", kText, "fp32",
                  "numbers to compute in; amp (amp_fp16) and amp_bf16 where 16 bits do, by autocast"}
                  .one_of({"fp32", "amp", "amp_fp16", "amp_bf16", "amp_fp8"}),
              Key{"hang_timeout", kTime, "60sec",
                  "a rank that is silent this long is given up, and the run ends"}
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
          .doc = "What is set apart from [train] precision, and how amp_fp16 scales losses.",
          .keys = {
              dtype("param_dtype", "of parameters and of the optimizer's state; fp32 when absent"),
              dtype("reduce_dtype", "that gradients are summed over ranks in; the parameters' when absent"),
              dtype("buffer_dtype", "of buffers, like running statistics; fp32 when absent"),
              Key{"init_scale", kNumber, "65536", "what losses are first multiplied by, before backward"}
                  .more_than(0)
                  .at_most(1e30),
              Key{"growth_factor", kNumber, "2", "of the scale, when no gradient overflowed for long"}
                  .at_least(1)
                  .at_most(1e6),
              Key{"backoff_factor", kNumber, "0.5",
                  "of the scale, when a gradient overflows; its step is skipped"}
                  .more_than(0)
                  .at_most(1),
              Key{"growth_interval", kInteger, "2000", "steps without an overflow before the scale grows"}
                  .at_least(1)
                  .at_most(1e9),
          }};
}

Catalog compat_catalog() {
  return {.section = "compat",
          .noun = "",
          .doc = "Whose way it is done where tutti's is another; docs/compat.md has the differences.",
          .keys = {{"composer", kBoolean, "false",
                    "Composer's: a learning rate that lags one batch, metrics that are means of batches"}}};
}

}  // namespace tutti
