#include "tests/commands/wrong_recipes.h"

#include <iterator>

namespace tutti {
namespace {

const std::string kTrainPath = "path = \"data/digits.h5\"\ngroup = \"train\"";

// Keys, kinds, types and ranges: found when the recipe is resolved.
std::vector<Mistake> mistakes_of_keys() {
  return {
      {"UnknownKey",
       "max_duration = \"20ep\"",
       "max_duratoin = \"20ep\"",
       "",
       {"train.max_duratoin = \"20ep\"", "did you mean max_duration?"}},
      {"UnknownKeyOfASchedulerInASequence",
       "[train]",
       "[scheduler]\nkind = \"sequential_lr\"\nmilestones = [5]\n[[scheduler.schedulers]]\nkind = "
       "\"linear_lr\"\n[[scheduler.schedulers]]\nkind = \"cosine_annealing_lr\"\nT_mux = 15\n[train]",
       "T_mux",
       {"scheduler.schedulers.1.T_mux = 15", "did you mean T_max?"}},
      {"UnknownSection", "[optimizer]", "[optimiser]", "", {"optimiser", "did you mean optimizer?"}},
      {"UnknownKind", "kind = \"sgd\"", "kind = \"sdg\"", "", {"optimizer.kind = \"sdg\"", "sgd"}},
      {"WrongType", "lr = 0.1", "lr = \"fast\"", "", {"optimizer.lr = \"fast\"", "expected a number"}},
      {"ValueOutOfRange",
       "batch_size = 96 ",
       "batch_size = 0 ",
       "",
       {"data.train.batch_size = 0", "expected"}},
      {"DurationWithoutAUnit",
       "max_duration = \"20ep\"",
       "max_duration = \"20\"",
       "",
       {"train.max_duration = \"20\"", "expected"}},
      {"DurationOfItself",
       "max_duration = \"20ep\"",
       "max_duration = \"1dur\"",
       "",
       {"train.max_duration = \"1dur\""},
       {2}},
      {"NoToml", "momentum = 0.9", "momentum = = 0.9", "", {}},
      {"KeyGivenByTwoNames",
       "interval = \"5ep\"",
       "interval = \"5ep\"\nsave_interval = \"5ep\"",
       "",
       {"save_interval", "interval"},
       {1, 2, 3},
       /*has_line=*/false},
      {"NumberThatIsNotFinite",
       "lr = 0.1",
       "lr = inf",
       "",
       {"optimizer.lr = inf: expected a finite number"},
       {1, 2}},
      {"CallbackThatIsASection",
       "[checkpoint]",
       "[[callbacks]]\nkind = \"checkpoint_saver\"\nfolder = \"x\"\n\n[checkpoint]",
       "\"checkpoint_saver\"",
       {"callbacks.0.kind = \"checkpoint_saver\"", "[checkpoint]", "save_folder"}},
      {"LoggerOfAHostedService",
       "[checkpoint]",
       "[[loggers]]\nkind = \"neptune\"\nproject = \"x\"\n\n[checkpoint]",
       "\"neptune\"",
       {"loggers.0.kind = \"neptune\"", "Not carried over", "kind = \"command\""}},
  };
}

// Data and models: found when the job is made.
std::vector<Mistake> mistakes_of_data() {
  return {
      {"ModelThatNoMemoryHolds",
       "hidden = [128, 64]",
       "hidden = [1000000000, 1000000]",
       "[model]",
       {"[model]: its parameters and gradients need", "GB"},
       {1, 2}},
      {"EvaluationDataThatTheModelCannotTake",
       "kind = \"hdf5\"\npath = \"data/digits.h5\"\ngroup = \"test\"",
       "kind = \"synthetic\"\nshape = [65]",
       "shape = [65]",
       {"data.eval.shape = [65]", "float32 [1, 8, 8]"},
       {1, 2}},
      {"MissingFile",
       kTrainPath,
       "path = \"data/digit.h5\"\ngroup = \"train\"",
       "",
       {"data.train.path = \"", "data/digit.h5", "no such file"}},
      {"BatchOfFewerSamplesThanRanks",
       "batch_size = 96 ",
       "batch_size = 1 ",
       "",
       {"data.train.batch_size = 1:", "a sample for each of 2 ranks"},
       {2}},
      {"Hdf5WithoutTheDataset",
       "group = \"train\"",
       "group = \"training\"",
       "",
       {"data.train.group = \"training\"", "data/digits.h5", "'/training/'", "train/input"}},
      {"FileThatIsNoHdf5",
       kTrainPath,
       "path = \"recipe.toml\"\ngroup = \"train\"",
       "",
       {"data.train.path = \"", "recipe.toml"}},
      {"TensorsMadeOfTensors",
       "[data.eval]",
       "[[data.train.transforms]]\nkind = \"to_tensor\"\n[data.eval]",
       "\"to_tensor\"",
       {"data.train.transforms.0.kind = \"to_tensor\": expected images, uint8", "float32 [1, 8, 8]"}},
      {"CropThatIsLargerThanTheImages",
       "[data.eval]",
       "[[data.train.transforms]]\nkind = \"flip\"\n[[data.train.transforms]]\nkind = \"center_crop\"\n"
       "size = [8, 9]\n[data.eval]",
       "[8, 9]",
       {"data.train.transforms.1.size = [8, 9]: the images are [8, 8]"}},
      {"MeanOfOtherChannels",
       "[optimizer]",
       "[[data.eval.transforms]]\nkind = \"normalize\"\nmean = [0.5, 0.5]\nstd = [1]\n[optimizer]",
       "[0.5, 0.5]",
       {"data.eval.transforms.0.mean = [0.5, 0.5]: the images have 1 channels"}},
      {"EvaluationImagesOfAnotherSize",
       "[data.eval]",
       "[[data.train.transforms]]\nkind = \"resize\"\nsize = 6\n[data.eval]",
       "digits.h5\"\ngroup = \"test\"",
       {"data.eval.path = ", "whose 'input' is float32 [1, 6, 6]; here it is float32 [1, 8, 8]"}},
      {"TimeInTokensOfAModelThatCountsNone",
       "interval = \"5ep\"",
       "interval = \"5tok\"",
       "",
       {"checkpoint.interval = \"5tok\"", "mlp counts no tokens"},
       {2}},
  };
}

std::vector<Mistake> mistakes_of_metrics() {
  return {
      {"PlateauOfAMetricThatIsNotMeasured",
       "[train]",
       "[scheduler]\nkind = \"reduce_lr_on_plateau\"\nmonitor = "
       "\"metrics/eval/LanguageCrossEntropy\"\n[train]",
       "monitor",
       {"not measured by any evaluator; expected one of metrics/eval/MulticlassAccuracy"}},
      {"MetricThatNothingMeasures",
       "[checkpoint]",
       "[[callbacks]]\nkind = \"early_stopper\"\nmonitor = \"MulticlasAccuracy\"\n\n[checkpoint]",
       "monitor",
       {"callbacks.0.monitor = \"MulticlasAccuracy\"", "did you mean MulticlassAccuracy?"}},
      {"MetricThatIsNotMeasuredInTraining",
       "[checkpoint]",
       "[[callbacks]]\nkind = \"early_stopper\"\ndataloader_label = \"train\"\nmonitor = "
       "\"CrossEntropy\"\n\n[checkpoint]",
       "monitor",
       {"callbacks.0.monitor = \"CrossEntropy\"", "it measures MulticlassAccuracy"}},
      {"MetricOfDataThatThereIsNot",
       "[checkpoint]",
       "[[callbacks]]\nkind = \"threshold_stopper\"\ndataloader_label = \"evil\"\nmonitor = "
       "\"CrossEntropy\"\nthreshold = 1\n\n[checkpoint]",
       "monitor",
       {"callbacks.0.monitor = \"CrossEntropy\"", "nothing is measured under the label \"evil\""}},
      {"MetricThatIsNamedWithAnotherLabel",
       "[checkpoint]",
       "[[callbacks]]\nkind = \"early_stopper\"\nmonitor = \"metrics/far/loss\"\n[[evaluators]]\nlabel = "
       "\"far\"\nkind = \"hdf5\"\npath = \"data/digits.h5\"\ngroup = \"test\"\n[checkpoint]",
       "monitor",
       {"callbacks.0.monitor = \"metrics/far/loss\"", "set dataloader_label = \"far\""}},
      {"MetricThatCannotMeasureTheModel",
       "[data.eval]",
       "[data.eval]\nmetric_names = [\"MeanSquaredError\"]",
       "[data.eval]",
       {"MeanSquaredError cannot measure this model on this data"}},
      {"BestOfALossThatIsLeftOut",
       "[checkpoint]",
       "[[evaluators]]\nlabel = \"far\"\nloss = false\nkind = \"hdf5\"\npath = \"data/digits.h5\"\ngroup = "
       "\"test\"\n[checkpoint]\nbest = { metric = \"metrics/far/loss\" }",
       "best =",
       {"checkpoint.best.metric = \"metrics/far/loss\": not measured by any evaluator"}},
      {"PlateauOfALossThatIsLeftOut",
       "[data.eval]",
       "[scheduler]\nkind = \"reduce_lr_on_plateau\"\nmonitor = \"metrics/eval/loss\"\n[data.eval]\nloss = "
       "false",
       "monitor",
       {"scheduler.monitor = \"metrics/eval/loss\": not measured by any evaluator"}},
      {"StopperOfALossThatIsLeftOut",
       "[data.eval]",
       "[[callbacks]]\nkind = \"early_stopper\"\nmonitor = \"metrics/eval/loss\"\n[data.eval]\nloss = false",
       "monitor",
       {"callbacks.0.monitor = \"metrics/eval/loss\": there is no such metric"}},
  };
}

std::vector<Mistake> mistakes_of_files_to_write() {
  return {
      {"LogThatSeveralRanksWouldWrite",
       "[checkpoint]",
       "[[loggers]]\nkind = \"csv\"\nrank_zero_only = false\nfilename = \"all.csv\"\n\n[checkpoint]",
       "all.csv",
       {"loggers.0.filename = \"all.csv\"", "expected {rank} in the name"}},
      {"LogThatTheRunItselfWrites",
       "[checkpoint]",
       "[[loggers]]\nkind = \"jsonl\"\nfilename = \"./metrics.jsonl\"\n\n[checkpoint]",
       "\"./metrics.jsonl\"",
       {"loggers.0.filename = \"./metrics.jsonl\"", "is the run's own"},
       {1, 2}},
      {"LogOutOfTheRun",
       "[checkpoint]",
       "[[loggers]]\nkind = \"csv\"\nfilename = \"../../all.csv\"\n\n[checkpoint]",
       "\"../../all.csv\"",
       {"loggers.0.filename = \"../../all.csv\"", "leads out of the run's folder, to "},
       {1, 2}},
      {"LogOutOfTheRunByAPlaceholder",
       "[checkpoint]",
       "[[loggers]]\nkind = \"tensorboard\"\nlog_dir = \"{run_name}/../../events\"\n\n[checkpoint]",
       "\"{run_name}/../../events\"",
       {"loggers.0.log_dir = \"{run_name}/../../events\"", "leads out of the run's folder, to "},
       {1, 2}},
      {"WeightsInThePlaceOfTheRecipe",
       "[checkpoint]",
       "[[callbacks]]\nkind = \"export_for_inference\"\nsave_path = \"recipe.toml\"\n\n[checkpoint]",
       "\"recipe.toml\"",
       {"callbacks.0.save_path = \"recipe.toml\"", "is the run's own"},
       {1, 2}},
      {"TwoLogsOfOneName",
       "[checkpoint]",
       "[[loggers]]\nkind = \"csv\"\n\n[[loggers]]\nkind = \"csv\"\n\n[checkpoint]",
       "",
       {"loggers.1.filename", "writes there too"},
       {1, 2},
       /*has_line=*/false},
  };
}

}  // namespace

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all = mistakes_of_keys();
  for (auto* more : {mistakes_of_data, mistakes_of_metrics, mistakes_of_files_to_write}) {
    auto these = more();
    all.insert(all.end(), std::make_move_iterator(these.begin()), std::make_move_iterator(these.end()));
  }
  return all;
}

}  // namespace tutti
