#include "job/make_job.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>

#include "algorithms/factory.h"
#include "data/balance/sampler.h"
#include "data/readers/make_dataset.h"
#include "data/readers/opened.h"
#include "data/readers/recipe_transforms.h"
#include "data/split/open_split.h"
#include "io/checkpoint/checkpoint.h"
#include "io/journal/recorded_run.h"
#include "io/run_paths.h"
#include "job/accumulation.h"
#include "job/class_weights.h"
#include "job/copied_targets.h"
#include "job/earlier_run.h"
#include "job/evaluation_data.h"
#include "job/named_targets.h"
#include "job/names/deepspeed.h"
#include "job/token_times.h"
#include "job/written_files.h"
#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "recipe/plugin_maker.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/printable.h"
#include "runtime/process/this_process.h"
#include "runtime/text.h"
#include "runtime/user_errors.h"
#include "training/evaluation/catalog.h"
#include "training/loggers/factory.h"

namespace tutti {
namespace {

// Samples of a step over all ranks; 0 if neither key is given. `own`: each rank reads a per-rank dataset, the
// same number of samples on all.
int64_t global_batch(const DataSettings& data, const Job& job, bool own) {
  const int world = job.data_world();
  if (const auto& size = data.device_batch_size; size->has_value()) {
    const int64_t most = std::numeric_limits<int64_t>::max() / world;
    if (**size > most) size.fail("expected at most " + std::to_string(most) + " samples");
    return **size * world;
  }
  const Setting& key = data.batch_size.key;
  const int64_t size = data.batch_size->value_or(0);
  if (size == 0) return 0;
  if (size < world)
    key.fail("expected a sample for each of " + std::to_string(world) +
             (job.settings.reproducibility.is_elastic() ? " grains at least" : " ranks at least"));
  if (own && size % world != 0)
    key.fail("expected a multiple of the number of ranks, " + std::to_string(world) +
             ": each rank has its own dataset, and all get the same number of samples");
  return size;
}

void require_batches(const DataSettings& data, const Sampler& sampler) {
  if (data.subset_num_batches == 0)
    data.subset_num_batches.fail("expected at least one batch, or -1 for all");
  if (sampler.batches() == 0)
    data.drop_last.fail("an epoch has no batch: the data is shorter than one, and short ones are dropped");
}

Setting option(const std::string& name, const std::string& value) {
  return Setting(value, name, {"command line"});
}

// The folder of a run must be below runs/: not runs/ itself, and not elsewhere by a name like "..".
void require_folder(const Setting& recipe, const JobOptions& options) {
  for (const auto& path : {option("--run-dir", options.run_dir), option("--resume", options.resume)})
    if (!is_utf8(path.text())) path.fail("expected a path in UTF-8");
  const Setting name = RunKeys::kind().read(recipe).run_name.key;
  const auto below =
      std::filesystem::path("runs/" + name.text()).lexically_normal().lexically_relative("runs");
  if (options.run_dir.empty() && (below.empty() || below == "." || *below.begin() == ".."))
    name.fail("expected the name of a folder below runs/, or --run-dir");
  const Setting& folder = options.run_dir.empty() ? name : option("--run-dir", options.run_dir);
  if (!is_printable(folder.text())) folder.fail("expected a name without line breaks and control characters");
  for (const auto& part : std::filesystem::path(folder.text()))
    if (part.native().size() > NAME_MAX) folder.fail("expected names of at most 255 bytes");
}

void open_devices(Job& job) {
  job.devices = DeviceLibrary::of(job.recipe.at("device"));
  const auto& backend = job.settings.collectives.backend;
  if (backend == Backend::kNccl && !job.devices)
    backend.fail("it joins GPUs, and this run computes on the CPU; expected auto, or device.kind = \"gpu\"");
  const bool may_be_nccl = backend == Backend::kNccl || backend == Backend::kAuto;
  const ReproducibilitySettings& elastic = job.settings.reproducibility;
  if (elastic.is_elastic() && job.world > 1 && job.devices && job.devices->is_gpu() && may_be_nccl)
    elastic.mode.fail("NCCL adds in an order of its own; with collectives.backend = \"mpi\" the hosts add");
}

// Hybrid sharding cuts the ranks into several groups of one size.
void require_whole_shard_groups(const Job& job) {
  if (job.settings.sharding.strategy != ShardingStrategy::kHybrid || job.world == 1) return;
  const auto& size = job.settings.sharding.shard_size;
  const std::string ranks = "the number of ranks, " + std::to_string(job.world);
  if (size >= job.world)
    size.fail("expected fewer than " + ranks + "; sharding.strategy = \"full\" shares one copy among all");
  if (job.world % size != 0) size.fail("expected a divisor of " + ranks);
}

// True if the program has the component. Throws UserError if the recipe names another.
bool is_from_program(const Setting& section, bool has) {
  if (has && section.at("kind").text() != "program")
    section.at("kind").fail(
        "the program brings its own, and the recipe names another; keep one of the two "
        "(kind = \"program\" is the program's)");
  return has;
}

// What a command writes is kept for the batches that are read at a time.
Setting with_global_batch(const Job& job, Setting section) {
  int64_t batch = global_batch(DataSettings::read(section), job, false);
  if (batch == 0) batch = global_batch(job.settings.train_data, job, false);
  if (Setting* size = section.find("batch_size")) size->value = batch;
  return section;
}

// Opens the data of each rank in this process. Returns the first rank's.
DatasetPtr open_per_rank(const Job& job, const JobOptions& options, const Setting& section,
                         PerRankData& own) {
  DatasetPtr first;
  own.datasets.resize(static_cast<std::size_t>(job.world));
  for (int rank = 0; rank < job.world; ++rank) {
    if (options.rank >= 0 && rank != options.rank) continue;
    const auto r = static_cast<std::size_t>(rank);
    const std::string host = r < options.hosts.size() ? options.hosts[r] : host_name();
    own.datasets[r] = make_per_rank_dataset(section, job.seed, {rank, host}, ignore_index(job.recipe));
    if (!first) first = own.datasets[r];
  }
  if (first && !first->fitted().empty())
    DataSettings::read(section).sampling.fail(
        "tables are of all ranks: the numbers of each would differ; path may name "
        "several files");
  return first;
}

// The samples that a program or a plugin brings for the section; null: none.
DatasetPtr given_data(const Job& job, const JobOptions& options, const Setting& section,
                      const std::string& label) {
  const auto& data = options.components.data;
  const auto dataset = data.find(label);
  const bool is_given = is_from_program(section, dataset != data.end());
  const bool is_plugged = is_of_plugin(section);
  const auto sampling = DataSettings::read(section).sampling;
  if ((is_given || is_plugged) && sampling == DataSettings::Sampling::kOwn)
    sampling.fail("per-rank datasets are files that path names by {rank} or {host}");
  if (is_given) return dataset->second;
  return is_plugged ? job.plugin->dataset(section) : nullptr;
}

DatasetPtr open_data(const Job& job, const JobOptions& options, const Setting& section,
                     const std::string& label, PerRankData& own) {
  const int64_t ignored = ignore_index(job.recipe);
  if (const DatasetPtr given = given_data(job, options, section, label))
    return with_recipe_transforms(section, given, "", ignored);
  if (has_per_rank_data(section)) return open_per_rank(job, options, section, own);
  const auto fitted = label == "train" ? std::nullopt : std::optional(job.fitted);
  return make_dataset(section.has("command") ? with_global_batch(job, section) : section, job.seed, "",
                      ignored, fitted);
}

// Each rank's facts about its per-rank datasets, a line for each dataset.
std::vector<std::string> facts_of_all(const std::vector<const PerRankData*>& own, int world,
                                      const JobOptions& options) {
  const auto facts = [&](int rank) {
    std::string lines;
    for (const PerRankData* per_rank : own)
      lines += facts_text(*per_rank->datasets[static_cast<std::size_t>(rank)]) + '\n';
    return lines;
  };
  // With several processes all ranks take part in this round, even if their recipes differ.
  if (options.all_gather) return options.all_gather(facts(options.rank));
  std::vector<std::string> all;
  for (int rank = 0; rank < world; ++rank) all.push_back(facts(rank));
  return all;
}

void settle_data(Job& job, const JobOptions& options) {
  std::vector<std::pair<PerRankData*, const Setting*>> sections;
  if (!job.per_rank_train.empty())
    sections.emplace_back(&job.per_rank_train, &job.recipe.at("data").at("train"));
  for (auto& evaluator : job.evaluators)
    if (!evaluator.own.empty()) sections.emplace_back(&evaluator.own, &evaluator.section);
  std::vector<const PerRankData*> own;
  for (const auto& [data, section] : sections) own.push_back(data);
  std::vector<std::vector<std::string>> facts(own.size());
  for (const std::string& rank_facts : facts_of_all(own, job.world, options)) {
    std::istringstream lines(rank_facts);
    for (auto& dataset_facts : facts) std::getline(lines, dataset_facts.emplace_back());
  }
  for (std::size_t i = 0; i < sections.size(); ++i)
    merge_facts(*sections[i].first, *sections[i].second, facts[i]);
}

void require_own_label(const Job& job, const Given<std::string>& label) {
  if (label->empty() || label == "train")
    label.fail("expected a name for the evaluated data, other than \"train\"");
  for (const auto& other : job.evaluators)
    if (label == other.label) label.fail("another evaluator has this label; each needs its own");
}

// `held_out`: the evaluator's data, if they are open.
void add_evaluator(Job& job, const JobOptions& options, const Setting& section,
                   const DatasetPtr& held_out = nullptr) {
  require_own_label(job, EvaluatorKeys::kind().read(section).label);
  Evaluator evaluator = Evaluator::read(section, job.settings.train);
  evaluator.data = held_out ? held_out : open_data(job, options, section, evaluator.label, evaluator.own);
  job.evaluators.push_back(std::move(evaluator));
}

void open_training(Job& job, const JobOptions& options) {
  const Setting& data = job.recipe.at("data");
  job.train = open_data(job, options, data.at("train"), "train", job.per_rank_train);
  job.train = with_sampler(job.train, data.at("train"), data.at("eval"), ignore_index(job.recipe));
  job.fitted = options.fitted.empty() ? job.train->fitted() : options.fitted;
}

// Opens the training data and divides them.
void open_split_training(Job& job, const JobOptions& options) {
  const Setting &train = job.recipe.at("data").at("train"), &eval = job.recipe.at("data").at("eval");
  is_from_program(eval, options.components.data.contains(EvaluatorKeys::kind().read(eval).label));
  const SplitData split =
      open_split(train, eval, given_data(job, options, train, "train"),
                 {.seed = job.seed,
                  .ignore_index = ignore_index(job.recipe),
                  .fitted = options.fitted.empty() ? std::nullopt : std::optional(options.fitted)});
  job.train = with_sampler(split.train, train, eval, ignore_index(job.recipe));
  job.fitted = options.fitted.empty() ? job.train->fitted() : options.fitted;
  add_evaluator(job, options, split.eval, split.held_out);
}

void open_all_data(Job& job, const JobOptions& options) {
  const Setting& data = job.recipe.at("data");
  MistakeCollector mistakes;
  const bool splits = is_split(data.at("eval"));
  mistakes.collect([&] { splits ? open_split_training(job, options) : open_training(job, options); });
  if (data.has("eval") && !splits) mistakes.collect([&] { add_evaluator(job, options, data.at("eval")); });
  for (const auto& section : job.recipe.at("evaluators").array())
    mistakes.collect([&] { add_evaluator(job, options, section); });
  mistakes.throw_all();
  settle_data(job, options);
  job.data_digest = job.per_rank_train.empty() ? job.train->digest() : job.per_rank_train.digest;
}

// The number of pieces of parameters and gradients; a rank needs memory for one.
int pieces_of_memory(const Job& job) {
  using enum ShardingStrategy;
  const ShardingStrategy strategy = job.settings.sharding.strategy;
  return strategy == kFull || strategy == kHybrid ? job.topology(0).share.pieces : 1;
}

// Returns a model on the meta device, for further checks.
std::shared_ptr<Model> open_training_data(Job& job, const UserComponents& components) {
  if (is_from_program(job.recipe.at("model"), static_cast<bool>(components.make_model)))
    job.make_model = components.make_model;
  if (is_of_plugin(job.recipe.at("model")))
    job.make_model = [plugin = job.plugin](const Setting& model, const SampleSpec& samples) {
      return plugin->model(model, samples);
    };
  const DataSettings& data = job.settings.train_data;
  job.global_batch = global_batch(data, job, !job.per_rank_train.empty());
  require_deepspeed_rule(job.recipe, job.global_batch, job.data_world());
  require_batches(data, job.train_sampler(0));
  auto model = build_model(job.recipe.at("model"), job.spec(), job.make_model, pieces_of_memory(job));
  require_tokens(job.recipe, *model, job.spec());
  require_accumulation(job, *model);
  require_names_of_steps(job.settings.checkpoint, *model, job.spec());
  return model;
}

void require_budget_of_each_rank(const Job& job) {
  const Setting& budget = job.settings.device.memory_budget_mb.key;
  if (budget.is_array() && static_cast<int>(budget.array().size()) != job.world)
    budget.fail("expected one number for each of the " + std::to_string(job.world) +
                " ranks, or one for all");
}

void require_different_names(const Evaluator& evaluator, const Model& model) {
  std::vector<std::string> names = evaluator.metric_names(model);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  const EvaluatorKeys keys = EvaluatorKeys::kind().read(evaluator.section);
  (keys.metrics.is_none() ? keys.metric_names : keys.metrics).fail(*twice + " is in it twice");
}

void complete(const Job& job, const Model& model, Evaluator& evaluator) {
  if (job.settings.reproducibility.is_elastic() && !evaluator.own.empty())
    evaluator.loading.sampling.fail(
        "contradicts reproducibility.mode = \"elastic\": samples then depend on ranks");
  evaluator.global_batch = global_batch(evaluator.loading, job, !evaluator.own.empty());
  if (evaluator.global_batch == 0) evaluator.global_batch = job.global_batch;
  const Sampler sampler = job.eval_sampler(evaluator, 0);
  require_batches(evaluator.loading, sampler);
  evaluator.batches = sampler.batches();
  require_suits_training(job, evaluator, pieces_of_memory(job));
  require_different_names(evaluator, model);
}

// Early, so that the error names the folder's key, not the first file that cannot be written.
void make_folder(const Setting& named, const std::string& folder) {
  try {
    PosixDisk().make_folders(folder);
  } catch (const OperatingError& error) {
    named.fail(error);
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    named.fail(OperatingError({folder}, std::string("cannot be written: ") + std::strerror(errno)));
}

void make_folders(const Job& job, const JobOptions& options) {
  make_folder(options.run_dir.empty() ? RunKeys::kind().read(job.recipe).run_name.key
                                      : option("--run-dir", options.run_dir),
              job.run_dir);
  const auto& save_folder = job.settings.checkpoint.save_folder;
  if (save_folder->has_value()) make_folder(save_folder.key, job.checkpoints);
  if (job.settings.journal.level != JournalLevel::kOff)
    make_folder(job.settings.journal.level.key, journals_folder(job.run_dir));
}

void require_consistent_recipe(Job& job) {
  MistakeCollector mistakes;
  mistakes.collect([&] {
    job.from = start_from(job.recipe, job.resume);
    if (Setting& path = job.from.load_path; path.is_text() && is_remote_path(path.text())) {
      path.written = path.text();
      path.value = job.run_dir + '/' + kFetchedFolder;
    }
  });
  mistakes.collect([&] { open_devices(job); });
  mistakes.collect([&] { require_whole_shard_groups(job); });
  mistakes.collect([&] { check_loggers(job.recipe); });
  mistakes.collect([&] { check_written_files(job); });
  mistakes.collect([&] { require_budget_of_each_rank(job); });
  mistakes.throw_all();
}

}  // namespace

std::vector<std::string> job_advice(const Job& job) {
  std::vector<std::string> advice;
  const auto add = [&](const Setting& section, const Dataset& data) {
    std::istringstream lines(data.advice());
    for (std::string line; std::getline(lines, line);) advice.push_back(section.path + ": " + line);
  };
  const Setting& data = job.recipe.at("data").at("train");
  add(data, *job.train);
  for (const std::string& text : label_advice(job)) advice.push_back(data.path + ": " + text);
  for (const auto& evaluator : job.evaluators) add(evaluator.section, *evaluator.data);
  for (const std::string& text : {accumulation_advice(job), deepspeed_advice(job.recipe)})
    if (!text.empty()) advice.push_back(text);
  return advice;
}

std::string run_folder(const std::string& run_dir, const std::string& run_name) {
  return run_dir.empty() ? "runs/" + run_name : run_dir;
}

Job make_job(Setting recipe, const JobOptions& options) {
  Job job;
  require_folder(recipe, options);
  job.recipe = std::move(recipe);
  job.settings = RunSettings::read(job.recipe);
  job.world = options.world;
  job.nonce = options.nonce;
  job.cpu_stands_in = options.cpu_stands_in;
  job.run_dir = run_folder(options.run_dir, job.settings.run_name);
  job.checkpoints = job.settings.checkpoint.save_folder->value_or(job.run_dir + "/checkpoints");
  job.resume = options.resume;
  require_consistent_recipe(job);
  choose_seed(job, options.fresh_seed);
  choose_teachers(job);
  keep_class_names(job.recipe);
  job.plugin = load_plugin(job.recipe);
  job.make_algorithm = [plugin = job.plugin](const Setting& section) {
    const bool is_plugin = is_of_plugin(section);
    auto made = is_plugin ? plugin->algorithm(section) : make_algorithm(section);
    made->set_section(section);
    return made;
  };
  job.listeners = options.components.listeners;
  job.tasks = options.components.tasks;
  job.tasks_done = options.components.tasks_done;
  open_all_data(job, options);
  settle_class_weights(job);
  job.recipe_text = write_recipe(with_command_names(job.recipe));
  const auto model = open_training_data(job, options.components);
  for (auto& evaluator : job.evaluators) complete(job, *model, evaluator);
  require_no_copied_targets(job);
  require_no_names_as_values(job);
  check_tasks(job.tasks, job.evaluators, counts_tokens(*model, job.spec()));
  if (options.makes_folders) make_folders(job, options);
  return job;
}

}  // namespace tutti
