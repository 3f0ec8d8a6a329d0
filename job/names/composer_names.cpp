#include "job/names/composer_names.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "algorithms/catalog.h"
#include "job/names/fsdp_names.h"
#include "recipe/catalog.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using ComposerNames = std::vector<ComposerName>;
using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

constexpr const char* kPyTorchs = "PyTorch's";

std::string quoted(const char* text) { return std::string("\"") + text + '"'; }

ComposerNames of_kinds(const std::string& section, Pairs pairs, const char* origin = "Composer's") {
  ComposerNames names;
  for (const auto& [name, kind] : pairs)
    names.push_back({name, section + " kind = " + quoted(kind), "", origin});
  return names;
}

ComposerNames all_with_note(const char* note, std::initializer_list<const char*> given) {
  ComposerNames names;
  for (const char* name : given) names.push_back({name, "", note});
  return names;
}

ComposerNames of_data() {
  return {
      {"train_dataloader", "[data.train]"},
      {"train_dataloader_label", "", "not carried over: the training data is always called train"},
      {"spin_dataloaders", "",
       "not carried over: a resumed run reads its next batch by number, so no loader has to be advanced"},
      {"eval_dataloader", "[data.eval]", "each further one is one of [[evaluators]]"},
      {"Evaluator", "[[evaluators]]"},
      {"Evaluator.dataloader", "[[evaluators]]"},
      {"DataSpec", "data/dataset.h", "in a C++ program: a Dataset with samples by index"},
      {"DataSpec.num_samples", "data/dataset.h", "Dataset::size"},
      {"DataSpec.num_tokens", "models/model.h", "Model::tokens counts the tokens of a batch"},
      {"DataSpec.get_num_tokens_in_batch", "models/model.h", "Model::tokens"},
      {"DataSpec.get_num_samples_in_batch", "",
       "not carried over: the first dimension of all tensors in a batch is the sample"},
      {"DataSpec.split_batch", "",
       "not carried over: a batch is a tree of tensors, split along the first dimension"},
      {"DataSpec.batch_transforms", "training/engine/algorithm.h",
       "use an algorithm that changes State::batch at AFTER_DATALOADER"},
      {"DataSpec.microbatch_transforms", "training/engine/algorithm.h",
       "use an algorithm that changes State::batch at BEFORE_FORWARD"},
      {"accumulate_train_batch_on_tokens", "models/model.h",
       "not needed: losses are weighted by Model::loss_weight, the tokens of a language model"},
      {"StreamingDataset", "[data.train] kind = \"mds\""},
  };
}

ComposerNames of_run() {
  return {
      {"optimizers", "[optimizer]"},
      {"schedulers", "[scheduler]", "one; PyTorch's may follow one another as kind = \"sequential_lr\""},
      {"step_schedulers_every_batch", "[scheduler] step",
       "for PyTorch's schedulers; Composer's schedulers step every batch"},
      {"algorithm_passes", "training/engine/engine.h", "in a C++ program: Engine::Options::passes"},
      {"precision_config", "[precision]", "Composer's is for amp_fp8, which needs a GPU"},
      {"python_log_level", "",
       "not carried over: each rank's log file has every line, and warnings and errors are printed too"},
      {"compile_config", "", "not carried over: torch.compile is Python's"},
      {"ddp_sync_strategy", "",
       "not carried over: gradients are summed over ranks once a step, during the last microbatch's "
       "backward, "
       "as with single_auto_sync; a parameter without a gradient on any rank is not changed"},
      {"deepspeed_config", "[deepspeed]"},
      {"seed_all", "seed"},
      {"configure_deterministic_mode", "[train] deterministic_mode"},
      {"launcher", "",
       "not carried over: `mpirun -np 8 tutti train RECIPE` starts the ranks; each has its own log"},
  };
}

ComposerNames of_profiler() {
  return {
      {"profiler", "[profiler]"},
      {"cyclic_schedule", "[profiler]", "its keys skip_first, wait, warmup, active and repeat"},
      {"TorchProfiler", "[profiler]", "operators and kernels, by Kineto"},
      {"JSONTraceHandler", "tutti timeline", "converts the journal of a run to Chrome's trace format"},
      {"merge_traces", "tutti timeline", "one trace has all ranks, and the profiler's operators"},
      {"SystemProfiler", "[[callbacks]] kind = \"system_metrics_monitor\""},
  };
}

ComposerNames of_trainer() {
  return {
      {"Trainer", "commands/trainer.h", "for C++ programs; `tutti train` is for recipes"},
      {"Trainer.fit", "tutti train", "in a C++ program: Trainer::fit (commands/trainer.h)"},
      {"Trainer.fit.duration", "[train] max_duration",
       "counted from the start of the run; a C++ program continues with the task train_on (job/task.h)"},
      {"Trainer.fit.reset_time", "[checkpoint] load_ignore_keys",
       "with load_path, [\"timestamp\"] loads the weights and counts time from 0"},
      {"Trainer.eval", "tutti eval", "in a C++ program: the task evaluate_on (job/task.h)"},
      {"eval_standalone", "tutti eval", "its events are EVAL_STANDALONE_START and EVAL_STANDALONE_END"},
      {"Trainer.predict", "tutti predict", "in a C++ program: the task predict_on (job/task.h)"},
      {"Trainer.save_checkpoint", "[checkpoint] interval",
       "a run is also saved at its end and on `tutti stop`; in a C++ program: Trainer::save_checkpoint; in a "
       "callback: State::checkpoint_requested"},
      {"Trainer.export_for_inference", "[[callbacks]] kind = \"export_for_inference\""},
  };
}

ComposerNames of_cpp() {
  return {
      {"ComposerModel", "models/model.h"},
      {"validate", "tutti eval", "a model's own validation step is Model::eval_forward (models/model.h)"},
      {"closure", "training/optimizers/closure.h",
       "State::closure_step: what an optimizer calls to compute loss and gradients again, as SAM does"},
      {"eval_forward", "models/model.h"},
      {"update_metric", "models/model.h"},
      {"get_metrics", "models/model.h"},
      {"Algorithm", "training/engine/algorithm.h"},
      {"AlgorithmPass", "training/engine/engine.h"},
      {"Callback", "training/engine/callback.h"},
      {"Engine", "training/engine/engine.h"},
      {"Event", "training/engine/event.h"},
      {"Logger", "training/engine/logger.h"},
      {"LoggerDestination", "training/loggers/logger_destination.h"},
      {"State", "training/state.h"},
      {"Time", "recipe/time/time.h"},
      {"TimeUnit", "recipe/time/time.h"},
      {"Timestamp", "recipe/time/timestamp.h"},
      {"soft_cross_entropy", "models/losses.h"},
      {"binary_cross_entropy_with_logits", "models/losses.h"},
      {"DiceLoss", "models/losses.h"},
  };
}

ComposerNames of_interop() {
  return {
      {"ComposerClassifier", "[model] kind = \"exported\"",
       "a network of torch.export's, with cross entropy unless [model] loss says otherwise"},
      {"composer_resnet", "[model] kind = \"resnet\"", "depth = 50; resnet_cifar for composer_resnet_cifar"},
      {"HuggingFaceModel", "[model] kind = \"hf\"", "a folder with config.json and weights"},
      {"hf_causal_lm", "[model] kind = \"hf\"", "a folder with config.json and weights"},
      {"peft_config", "[[algorithms]] kind = \"lora\"", "with peft_type LORA"},
  };
}

ComposerNames of_time() {
  const std::initializer_list<std::array<const char*, 3>> units = {
      {"iter", "ITERATION",
       "iterations of [train] iteration_length epochs; without that key, one iteration is the whole "
       "training"},
      {"ep", "EPOCH", "epochs; also the unit of a bare integer"},
      {"ba", "BATCH", "batches: optimizer steps"},
      {"sp", "SAMPLE", "samples of all ranks together"},
      {"tok", "TOKEN", "tokens, for models that count tokens"},
      {"dur", "DURATION", "fractions of the whole training: 0.5dur"},
      {"sec", "SECOND", "seconds of training: 90sec, 1h20m40s"},
  };
  ComposerNames names;
  for (const auto& [unit, name, note] : units) {
    names.push_back({unit, std::string("the time unit ") + unit, note});
    names.push_back({std::string("TimeUnit.") + name, std::string("the time unit ") + unit, note});
  }
  return names;
}

ComposerNames events(Pairs pairs) {
  ComposerNames names;
  for (const auto& [name, when] : pairs) names.push_back({name, "the event " + lower_case(name), when});
  return names;
}

ComposerNames of_training_events() {
  return events({
      {"INIT", "the model is built, without values, and there is no optimizer yet: the time for surgery"},
      {"BEFORE_LOAD", "model and optimizer are built; the checkpoint, if any, is restored next"},
      {"AFTER_LOAD", "the checkpoint, if any, is restored"},
      {"FIT_START", "training begins, or continues in a task; also named TRAINING_START"},
      {"ITERATION_START",
       "before the first epoch of an iteration: once, unless [train] iteration_length is set"},
      {"EPOCH_START", "before the first batch of an epoch"},
      {"BEFORE_DATALOADER", "before each batch is read, and once more at the end of the epoch"},
      {"AFTER_DATALOADER", "the batch is read; a step that ran out of memory is retried from here"},
      {"BATCH_START", "before the step of a batch"},
      {"BEFORE_TRAIN_BATCH", "before the microbatches of a batch; with closures, before each pass"},
      {"BEFORE_FORWARD", "before the forward pass of a microbatch"},
      {"AFTER_FORWARD", "the outputs of a microbatch are computed"},
      {"BEFORE_LOSS", "before the loss of a microbatch"},
      {"AFTER_LOSS", "the loss of a microbatch is computed"},
      {"BEFORE_BACKWARD", "before the backward pass of a microbatch"},
      {"AFTER_BACKWARD", "after the backward pass of a microbatch"},
      {"AFTER_TRAIN_BATCH", "gradients are summed over microbatches and ranks; the optimizer steps next"},
      {"BATCH_END", "the optimizer has stepped and time has advanced; due evaluations come next"},
      {"BATCH_CHECKPOINT", "after the evaluations due at the end of a batch"},
      {"EPOCH_END", "an epoch is over; due evaluations come next"},
      {"EPOCH_CHECKPOINT", "after the evaluations due at the end of an epoch"},
      {"FIT_END", "training has reached max_duration; also named TRAINING_END"},
      {"EVAL_BEFORE_ALL", "before the due evaluators"},
      {"EVAL_START", "before the first batch of an evaluator"},
      {"EVAL_BATCH_START", "before a batch of an evaluation"},
      {"EVAL_BEFORE_FORWARD", "before the forward pass of an evaluation's batch"},
      {"EVAL_AFTER_FORWARD", "the outputs of an evaluation's batch are computed; metrics are updated next"},
      {"EVAL_BATCH_END", "metrics are updated with a batch of an evaluation"},
      {"EVAL_END", "the metrics of an evaluator are computed"},
      {"EVAL_AFTER_ALL", "after the due evaluators"},
  });
}

ComposerNames of_task_events() {
  return events({
      {"EVAL_STANDALONE_START", "before the evaluators of an evaluation outside of training"},
      {"EVAL_STANDALONE_END", "after the evaluators of an evaluation outside of training"},
      {"PREDICT_START", "before the first batch of a prediction"},
      {"PREDICT_BATCH_START", "before a batch of a prediction"},
      {"PREDICT_BEFORE_FORWARD", "before the forward pass of a prediction's batch"},
      {"PREDICT_AFTER_FORWARD", "the outputs of a prediction's batch are computed"},
      {"PREDICT_BATCH_END", "the outputs of a prediction's batch are written"},
      {"PREDICT_END", "after the last batch of a prediction"},
  });
}

ComposerNames of_other_events() {
  ComposerNames names = {{"TRAINING_START", "the event fit_start", "training begins"},
                         {"TRAINING_END", "the event fit_end", "training is over"}};
  for (auto& event : events({{"ITERATION_END", "an iteration of [train] iteration_length is over"},
                             {"ITERATION_CHECKPOINT", "after ITERATION_END; a checkpoint may follow"}}))
    names.push_back(std::move(event));
  return names;
}

ComposerNames of_callbacks() {
  return of_kinds("[[callbacks]]", {{"ActivationMonitor", "activation_monitor"},
                                    {"EarlyStopper", "early_stopper"},
                                    {"ExportForInference", "export_for_inference"},
                                    {"ExportForInferenceCallback", "export_for_inference"},
                                    {"FreeOutputs", "free_outputs"},
                                    {"Generate", "generate"},
                                    {"HuggingFaceCheckpointer", "hf_checkpointer"},
                                    {"ImageVisualizer", "image_visualizer"},
                                    {"LRMonitor", "lr_monitor"},
                                    {"MLPerfCallback", "mlperf_callback"},
                                    {"MemoryMonitor", "memory_monitor"},
                                    {"MemorySnapshot", "memory_snapshot"},
                                    {"NaNMonitor", "nan_monitor"},
                                    {"OOMObserver", "oom_observer"},
                                    {"OptimizerMonitor", "optimizer_monitor"},
                                    {"RuntimeEstimator", "runtime_estimator"},
                                    {"SpeedMonitor", "speed_monitor"},
                                    {"SystemMetricsMonitor", "system_metrics_monitor"},
                                    {"ThresholdStopper", "threshold_stopper"}});
}

ComposerNames of_checkpoint_callbacks() {
  return {
      {"CheckpointSaver", "[checkpoint]", "one per run"},
      {"CheckpointSaver.folder", "[checkpoint] save_folder"},
      {"CheckpointSaver.filename", "[checkpoint] save_filename"},
      {"CheckpointSaver.latest_filename", "[checkpoint] save_latest_filename"},
      {"CheckpointSaver.overwrite", "[checkpoint] save_overwrite"},
      {"CheckpointSaver.num_checkpoints_to_keep", "[checkpoint] keep"},
      {"CheckpointSaver.weights_only", "[checkpoint] save_weights_only"},
      {"CheckpointSaver.ignore_keys", "[checkpoint] save_ignore_keys"},
      {"CheckpointSaver.num_concurrent_uploads", "",
       "not carried over: tutti writes to file systems; use another program to copy the files"},
      {"LoadCheckpoint", "[checkpoint] resume", "one per run, between BEFORE_LOAD and AFTER_LOAD"},
      {"LoadCheckpoint.strict_model_weights", "[checkpoint] load_strict_model_weights"},
  };
}

ComposerNames of_loggers() {
  ComposerNames names = of_kinds("[[loggers]]", {{"CometMLLogger", "cometml"},
                                                 {"ConsoleLogger", "console"},
                                                 {"FileLogger", "file"},
                                                 {"InMemoryLogger", "in_memory"},
                                                 {"MLFlowLogger", "mlflow"},
                                                 {"MosaicMLLogger", "mosaicml"},
                                                 {"NeptuneLogger", "neptune"},
                                                 {"RemoteUploaderDownloader", "remote_uploader_downloader"},
                                                 {"SlackLogger", "slack"},
                                                 {"TensorboardLogger", "tensorboard"},
                                                 {"WandBLogger", "wandb"}});
  names.push_back({"ProgressBarLogger", "[train] progress_bar"});
  return names;
}

ComposerNames of_metrics() {
  return {{"BinaryF1", "metric BinaryF1Score"},
          {"MAP", "", "not yet: mean average precision needs a model that finds boxes"}};
}

ComposerNames of_optimizers() {
  return of_kinds("[optimizer]",
                  {{"DecoupledAdamW", "decoupled_adamw"}, {"DecoupledSGDW", "decoupled_sgdw"}});
}

ComposerNames of_torch_optimizers() {
  return of_kinds("[optimizer]", {{"SGD", "sgd"}, {"Adam", "adam"}, {"AdamW", "adamw"}}, kPyTorchs);
}

ComposerNames of_schedulers() {
  return of_kinds("[scheduler]", {{"ConstantScheduler", "constant"},
                                  {"ConstantWithWarmupScheduler", "constant_with_warmup"},
                                  {"CosineAnnealingScheduler", "cosine_annealing"},
                                  {"CosineAnnealingWarmRestartsScheduler", "cosine_annealing_warm_restarts"},
                                  {"CosineAnnealingWithWarmupScheduler", "cosine_annealing_with_warmup"},
                                  {"ExponentialScheduler", "exponential"},
                                  {"LinearScheduler", "linear"},
                                  {"LinearWithWarmupScheduler", "linear_with_warmup"},
                                  {"MultiStepScheduler", "multistep"},
                                  {"MultiStepWithWarmupScheduler", "multistep_with_warmup"},
                                  {"PolynomialScheduler", "polynomial"},
                                  {"PolynomialWithWarmupScheduler", "polynomial_with_warmup"},
                                  {"StepScheduler", "step"}});
}

ComposerNames of_torch_schedulers() {
  ComposerNames names = of_kinds("[scheduler]",
                                 {{"ConstantLR", "constant_lr"},
                                  {"CosineAnnealingLR", "cosine_annealing_lr"},
                                  {"CosineAnnealingWarmRestarts", "cosine_annealing_warm_restarts_lr"},
                                  {"ExponentialLR", "exponential_lr"},
                                  {"LinearLR", "linear_lr"},
                                  {"MultiStepLR", "multistep_lr"},
                                  {"OneCycleLR", "one_cycle_lr"},
                                  {"PolynomialLR", "polynomial_lr"},
                                  {"ReduceLROnPlateau", "reduce_lr_on_plateau"},
                                  {"SequentialLR", "sequential_lr"},
                                  {"StepLR", "step_lr"}},
                                 kPyTorchs);
  const std::string function = "not carried over: needs a Python function";
  for (const char* name : {"LambdaLR", "MultiplicativeLR"}) names.push_back({name, "", function, kPyTorchs});
  names.push_back({"CyclicLR", "", "not carried over: use one_cycle_lr or warm restarts", kPyTorchs});
  names.push_back({"ChainedScheduler", "", "not carried over: a recipe has one scheduler", kPyTorchs});
  return names;
}

// Algorithms and their functions, as their entries name them.
ComposerNames of_algorithms() {
  ComposerNames names;
  for (const Entry& entry : algorithm_catalog().entries) {
    const Origin& origin = entry.origin;
    if (origin.composer.empty()) continue;
    names.push_back({origin.composer, "[[algorithms]] kind = " + quoted(entry.name.c_str())});
    for (const std::string& function : origin.functions) names.push_back({function, origin.header});
  }
  names.push_back(
      {"selective_backprop", "algorithms/loop/selective_backprop.h"});  // a module of two functions
  return names;
}

}  // namespace

const std::vector<ComposerName>& composer_names() {
  static const ComposerNames names = [] {
    ComposerNames all;
    for (const auto& part : {of_data(),
                             of_run(),
                             fsdp_names(),
                             of_profiler(),
                             of_trainer(),
                             of_cpp(),
                             of_interop(),
                             of_time(),
                             of_training_events(),
                             of_task_events(),
                             of_other_events(),
                             of_callbacks(),
                             of_checkpoint_callbacks(),
                             of_loggers(),
                             of_metrics(),
                             of_optimizers(),
                             of_torch_optimizers(),
                             of_schedulers(),
                             of_torch_schedulers(),
                             of_algorithms()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return names;
}

}  // namespace tutti
