#include "cli/composer_names.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "runtime/text.h"

namespace tutti {
namespace {

using ComposerNames = std::vector<ComposerName>;
using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

constexpr const char* kPyTorchs = "PyTorch's";

std::string quoted(const char* text) { return std::string("\"") + text + '"'; }

ComposerNames of_kinds(const std::string& section, Pairs pairs, const char* whose = "Composer's") {
  ComposerNames names;
  for (const auto& [name, kind] : pairs)
    names.push_back({name, section + " kind = " + quoted(kind), "", whose});
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
      {"train_dataloader_label", "", "not carried over: what is trained on is always called train"},
      {"spin_dataloaders", "",
       "not carried over: a run that goes on takes its next batch by number, so no loader need be spun"},
      {"eval_dataloader", "[data.eval]", "each further one is one of [[evaluators]]"},
      {"Evaluator", "[[evaluators]]"},
      {"Evaluator.dataloader", "[[evaluators]]"},
      {"DataSpec", "data/dataset.h", "a program's own data are a Dataset, samples by number"},
      {"DataSpec.num_samples", "data/dataset.h", "Dataset::size"},
      {"DataSpec.num_tokens", "models/model.h", "Model::tokens says how many a batch has"},
      {"DataSpec.get_num_tokens_in_batch", "models/model.h", "Model::tokens"},
      {"DataSpec.get_num_samples_in_batch", "",
       "not carried over: the first dimension of a batch's tensors is the samples"},
      {"DataSpec.split_batch", "",
       "not carried over: a batch is a tree of tensors, which is cut along the first dimension of each"},
      {"DataSpec.batch_transforms", "training/engine/algorithm.h",
       "an algorithm that changes State::batch at AFTER_DATALOADER"},
      {"DataSpec.microbatch_transforms", "training/engine/algorithm.h",
       "an algorithm that changes State::batch at BEFORE_FORWARD"},
      {"accumulate_train_batch_on_tokens", "models/model.h",
       "nothing need be set: a loss weighs by what it is a mean over (Model::loss_weight), which is the "
       "tokens of a language model"},
      {"StreamingDataset", "", "not yet: MosaicML's shards are not read"},
  };
}

ComposerNames of_run() {
  return {
      {"optimizers", "[optimizer]"},
      {"schedulers", "[scheduler]", "one; PyTorch's may follow one another as kind = \"sequential_lr\""},
      {"step_schedulers_every_batch", "[scheduler] step",
       "of PyTorch's; Composer's schedulers are had at every batch"},
      {"algorithm_passes", "training/engine/engine.h", "Engine::Options::passes of a program of one's own"},
      {"precision_config", "[precision]", "Composer's is for amp_fp8, which needs a GPU"},
      {"python_log_level", "",
       "not carried over: each rank's log file has every line, and warnings and errors are printed too"},
      {"compile_config", "", "not carried over: torch.compile is Python's"},
      {"ddp_sync_strategy", "",
       "not carried over: gradients are summed over ranks once a step, while the last microbatch's backward "
       "runs, as with single_auto_sync; a parameter that no rank has a gradient of is left alone"},
      {"deepspeed_config", "[deepspeed]"},
      {"seed_all", "seed"},
      {"configure_deterministic_mode", "[train] deterministic_mode"},
      {"launcher", "",
       "not carried over: `mpirun -np 8 tutti train RECIPE` starts the ranks, each with a log of its own"},
  };
}

ComposerNames of_parallelism() {
  return all_with_note("not yet: every rank holds all weights; sharding comes later",
                       {"parallelism_config", "fsdp_config", "FSDPConfig", "FSDP2Config", "TPConfig"});
}

ComposerNames of_profiler() {
  const char* journal = "every run keeps a journal, and this draws it in Chrome's trace format";
  return {
      {"profiler", "tutti timeline", journal},
      {"JSONTraceHandler", "tutti timeline", journal},
      {"merge_traces", "tutti timeline", "one trace has all ranks"},
      {"cyclic_schedule", "", "not carried over: the journal has every step"},
      {"SystemProfiler", "[[callbacks]] kind = \"system_metrics_monitor\""},
      {"TorchProfiler", "", "not carried over: the journal has messages and events, not single operations"},
  };
}

ComposerNames of_trainer() {
  return {
      {"Trainer", "commands/trainer.h", "for a program of one's own; `tutti train` is for recipes"},
      {"Trainer.fit", "tutti train", "in a program of one's own Trainer::fit (commands/trainer.h)"},
      {"Trainer.fit.duration", "[train] max_duration",
       "counted from the beginning of the run; a program trains on by the task train_on (job/task.h)"},
      {"Trainer.fit.reset_time", "[checkpoint] load_ignore_keys",
       "with load_path, [\"timestamp\"] goes on from what was trained and counts from 0"},
      {"Trainer.eval", "tutti eval", "in a program of one's own the task evaluate_on (job/task.h)"},
      {"Trainer.predict", "tutti predict", "in a program of one's own the task predict_on (job/task.h)"},
      {"Trainer.save_checkpoint", "[checkpoint] interval",
       "a run is saved at its end too, and when it is asked to stop (`tutti stop`); in a program of one's "
       "own Trainer::save_checkpoint, in a callback State::checkpoint_requested"},
      {"Trainer.export_for_inference", "[[callbacks]] kind = \"export_for_inference\""},
  };
}

ComposerNames of_cpp() {
  return {
      {"ComposerModel", "models/model.h"},
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
      {"Time", "training/time/time.h"},
      {"TimeUnit", "training/time/time.h"},
      {"Timestamp", "training/time/timestamp.h"},
      {"soft_cross_entropy", "models/losses.h"},
      {"binary_cross_entropy_with_logits", "models/losses.h"},
      {"DiceLoss", "models/losses.h"},
  };
}

ComposerNames of_interop() {
  ComposerNames names = all_with_note(
      "not yet: weights come and go as safetensors ([model] weights, "
      "[[callbacks]] kind = \"export_for_inference\")",
      {"HuggingFaceModel", "hf_causal_lm", "hf_checkpointer"});
  names.push_back({"peft_config", "", "not yet: there is no LoRA"});
  return names;
}

ComposerNames of_time() {
  const std::initializer_list<std::array<const char*, 3>> units = {
      {"iter", "ITERATION",
       "iterations, of so many epochs as [train] iteration_length says; without it one holds all"},
      {"ep", "EPOCH", "epochs; an integer without a unit counts them"},
      {"ba", "BATCH", "batches, which are the optimizer's steps"},
      {"sp", "SAMPLE", "samples, of all ranks together"},
      {"tok", "TOKEN", "tokens, of a model that counts them"},
      {"dur", "DURATION", "parts of the whole training: 0.5dur"},
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
      {"INIT", "the model is there, without values, and there is no optimizer yet: the time for surgery"},
      {"BEFORE_LOAD", "model and optimizer are there; the checkpoint, if there is one, is restored next"},
      {"AFTER_LOAD", "the checkpoint, if there is one, is restored"},
      {"FIT_START", "training begins, or goes on by a task; also named TRAINING_START"},
      {"ITERATION_START",
       "before the first epoch of an iteration: once, unless [train] iteration_length says"},
      {"EPOCH_START", "before the first batch of an epoch"},
      {"BEFORE_DATALOADER", "before each batch is had, and before the look that finds the epoch over"},
      {"AFTER_DATALOADER", "the batch is there; a step that ran out of memory is done again from here"},
      {"BATCH_START", "before the step of a batch"},
      {"BEFORE_TRAIN_BATCH", "before the microbatches of a batch; with closures before each pass"},
      {"BEFORE_FORWARD", "before the forward pass of a microbatch"},
      {"AFTER_FORWARD", "a microbatch's outputs are there"},
      {"BEFORE_LOSS", "before the loss of a microbatch"},
      {"AFTER_LOSS", "a microbatch's loss is there"},
      {"BEFORE_BACKWARD", "before the backward pass of a microbatch"},
      {"AFTER_BACKWARD", "after the backward pass of a microbatch"},
      {"AFTER_TRAIN_BATCH", "gradients are summed over microbatches and ranks; the optimizer steps next"},
      {"BATCH_END", "the optimizer has stepped and time has moved on; evaluations that are due come next"},
      {"BATCH_CHECKPOINT", "after the evaluations that were due at the end of a batch"},
      {"EPOCH_END", "an epoch is over; evaluations that are due come next"},
      {"EPOCH_CHECKPOINT", "after the evaluations that were due at the end of an epoch"},
      {"FIT_END", "training has come to max_duration; also named TRAINING_END"},
      {"EVAL_BEFORE_ALL", "before the evaluators that are due"},
      {"EVAL_START", "before the first batch of an evaluator"},
      {"EVAL_BATCH_START", "before a batch of an evaluation"},
      {"EVAL_BEFORE_FORWARD", "before the forward pass of an evaluation's batch"},
      {"EVAL_AFTER_FORWARD", "the outputs of an evaluation's batch are there; metrics take them in next"},
      {"EVAL_BATCH_END", "metrics have taken in a batch of an evaluation"},
      {"EVAL_END", "an evaluator's metrics are there"},
      {"EVAL_AFTER_ALL", "after the evaluators that were due"},
  });
}

ComposerNames of_task_events() {
  return events({
      {"EVAL_STANDALONE_START", "before the evaluators of an evaluation that is no part of training"},
      {"EVAL_STANDALONE_END", "after the evaluators of an evaluation that is no part of training"},
      {"PREDICT_START", "before the first batch of a prediction"},
      {"PREDICT_BATCH_START", "before a batch of a prediction"},
      {"PREDICT_BEFORE_FORWARD", "before the forward pass of a prediction's batch"},
      {"PREDICT_AFTER_FORWARD", "the outputs of a prediction's batch are there"},
      {"PREDICT_BATCH_END", "the outputs of a prediction's batch are taken"},
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
      {"CheckpointSaver", "[checkpoint]", "one a run"},
      {"CheckpointSaver.folder", "[checkpoint] save_folder"},
      {"CheckpointSaver.filename", "[checkpoint] save_filename"},
      {"CheckpointSaver.latest_filename", "[checkpoint] save_latest_filename"},
      {"CheckpointSaver.overwrite", "[checkpoint] save_overwrite"},
      {"CheckpointSaver.num_checkpoints_to_keep", "[checkpoint] keep"},
      {"CheckpointSaver.weights_only", "[checkpoint] save_weights_only"},
      {"CheckpointSaver.ignore_keys", "[checkpoint] save_ignore_keys"},
      {"CheckpointSaver.num_concurrent_uploads", "",
       "not carried over: tutti writes to file systems; another program may copy what it wrote"},
      {"LoadCheckpoint", "[checkpoint] resume", "one a run, between BEFORE_LOAD and AFTER_LOAD"},
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
          {"MAP", "", "not yet: mean average precision is of boxes, which no model here finds"}};
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
  const std::string function = "not carried over: it calls a function of Python's";
  for (const char* name : {"LambdaLR", "MultiplicativeLR"}) names.push_back({name, "", function, kPyTorchs});
  names.push_back({"CyclicLR", "",
                   "not carried over: one_cycle_lr and warm restarts are what there is of cycles",
                   kPyTorchs});
  names.push_back({"ChainedScheduler", "", "not carried over: a recipe has one scheduler", kPyTorchs});
  return names;
}

ComposerNames of_algorithms() {
  ComposerNames names =
      all_with_note("not yet: most of Composer's algorithms come later; [[algorithms]] takes one's own",
                    {"Alibi",
                     "AugMix",
                     "BlurPool",
                     "ChannelsLast",
                     "ColOut",
                     "CutMix",
                     "CutOut",
                     "EMA",
                     "Factorize",
                     "GatedLinearUnits",
                     "GhostBatchNorm",
                     "GyroDropout",
                     "LabelSmoothing",
                     "LayerFreezing",
                     "LowPrecisionGroupNorm",
                     "LowPrecisionLayerNorm",
                     "MixUp",
                     "NoOpModel",
                     "ProgressiveResizing",
                     "RandAugment",
                     "SAM",
                     "SWA",
                     "SelectiveBackprop",
                     "SeqLengthWarmup",
                     "SqueezeExcite",
                     "StochasticDepth",
                     "WeightStandardization"});
  for (const auto& built : of_kinds("[[algorithms]]", {{"GradientClipping", "gradient_clipping"}}))
    names.push_back(built);
  return names;
}

ComposerNames of_functions() {
  ComposerNames names = all_with_note("not yet: the functions of Composer's algorithms come with them",
                                      {"apply_alibi",
                                       "apply_blurpool",
                                       "apply_channels_last",
                                       "apply_factorization",
                                       "apply_gated_linear_units",
                                       "apply_ghost_batchnorm",
                                       "apply_gyro_dropout",
                                       "apply_low_precision_groupnorm",
                                       "apply_low_precision_layernorm",
                                       "apply_squeeze_excite",
                                       "apply_stochastic_depth",
                                       "apply_weight_standardization",
                                       "augmix_image",
                                       "colout_batch",
                                       "compute_ema",
                                       "cutmix_batch",
                                       "cutout_batch",
                                       "freeze_layers",
                                       "mixup_batch",
                                       "randaugment_image",
                                       "resize_batch",
                                       "select_using_loss",
                                       "selective_backprop",
                                       "set_batch_sequence_length",
                                       "should_selective_backprop",
                                       "smooth_labels"});
  names.push_back({"apply_gradient_clipping", "algorithms/loop/gradient_clipping.h"});
  return names;
}

}  // namespace

// "Trainer.fit.duration" is called "fit.duration" and "duration" too.
bool ComposerName::is_called(const std::string& other) const {
  const std::string mine = lower_case(name), wanted = lower_case(other);
  return mine == wanted || mine.ends_with('.' + wanted);
}

const std::vector<ComposerName>& composer_names() {
  static const ComposerNames names = [] {
    ComposerNames all;
    for (const auto& part : {of_data(),
                             of_run(),
                             of_parallelism(),
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
                             of_algorithms(),
                             of_functions()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return names;
}

}  // namespace tutti
