#include "actors/job.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "actors/deepspeed.h"
#include "data/make_dataset.h"
#include "io/checkpoint.h"
#include "io/recipe.h"
#include "io/recorded_run.h"
#include "io/run_state.h"
#include "runtime/disk.h"
#include "runtime/launcher.h"
#include "tensors/meter.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

constexpr double kBytesPerMb = 1e6;

// Samples of a step over all ranks, from whichever of the two keys is given; 0 when neither is.
int64_t global_batch(const Setting& data, int world) {
  if (data.has("device_batch_size")) {
    const Setting& size = data.at("device_batch_size");
    if (size.integer() > std::numeric_limits<int64_t>::max() / world) size.fail("expected fewer samples");
    return size.integer() * world;
  }
  if (!data.has("batch_size")) return 0;
  const Setting& size = data.at("batch_size");
  if (size.integer() % world != 0)
    size.fail("expected a multiple of the number of ranks, " + std::to_string(world) +
              ", so that each gets as many samples");
  return size.integer();
}

Sampler sampler(const Setting& data, const Dataset& dataset, const OwnData& own, int64_t batch,
                const Job& job, int rank) {
  Sampler::Plan plan;
  plan.own = !own.empty();
  plan.samples = plan.own ? own.samples : dataset.size();
  plan.global_batch = batch;
  plan.rank = rank;
  plan.world = job.world;
  plan.seed = job.seed;
  plan.shuffle = data.at("shuffle").boolean();
  plan.drop_last = data.at("drop_last").boolean();
  return Sampler(plan);
}

void require_batches(const Setting& data, const Sampler& sampler) {
  if (sampler.batches() == 0)
    data.at("drop_last")
        .fail("an epoch has no batch: the data is shorter than one, and short ones are dropped");
}

// The seed of the first of these checkpoints that can be read; one that cannot is named when it is to be
// read.
std::optional<uint64_t> first_seed(const std::vector<std::string>& folders) {
  const PosixDisk disk;
  for (const std::string& folder : folders) {
    try {
      return RunState::from_json(read_manifest(disk, folder).state).seed;
    } catch (const OperatingError&) {
    }
  }
  return std::nullopt;
}

// The seed that the run to be gone on with was given, where it can be read.
std::optional<uint64_t> earlier_seed(const Job& job) {
  const PosixDisk disk;
  std::optional<uint64_t> seed;
  if (!job.from.autoresume.is_none()) {
    auto own = published_checkpoints(disk, job.checkpoints, checkpoint_set(job.recipe).names);
    for (auto& name : own) name = job.checkpoints + "/" + name;
    seed = first_seed({own.rbegin(), own.rend()});
  }
  const bool takes_seed = !job.from.terms.weights_only && !job.from.terms.ignored.fit("rank_zero_seed");
  if (!seed && !job.from.load_path.is_none() && takes_seed)
    seed = first_seed(checkpoints_at(disk, job.from.load_path.text()));
  return seed;
}

void require_cpu(const Setting& recipe) {
  const Setting& device = recipe.at("device").at("kind");
  if (device.text() == "gpu") device.fail("this build trains on CPUs");
  const Setting& backend = recipe.at("collectives").at("backend");
  if (backend.text() == "nccl") backend.fail("NCCL needs GPUs, and this build trains on CPUs");
}

// A recipe without a seed is given one, and the resolved recipe says which.
void choose_seed(Job& job, uint64_t fresh) {
  Setting& seed = *job.recipe.find("seed");
  if (seed.is_none()) {
    seed.value = static_cast<int64_t>(earlier_seed(job).value_or(fresh));
  }
  job.seed = static_cast<uint64_t>(seed.integer());
}

// The data of one section: of all ranks, or of each that is in this process.
DatasetPtr open_data(const Job& job, const JobOptions& options, const Setting& section, OwnData& own) {
  if (!has_own_data(section)) return make_dataset(section, job.seed);
  DatasetPtr first;
  own.of_rank.resize(static_cast<std::size_t>(job.world));
  for (int rank = 0; rank < job.world; ++rank) {
    if (options.rank >= 0 && rank != options.rank) continue;
    const auto r = static_cast<std::size_t>(rank);
    const std::string host = r < options.hosts.size() ? options.hosts[r] : host_name();
    own.of_rank[r] = make_own_dataset(section, job.seed, {rank, host});
    if (!first) first = own.of_rank[r];
  }
  return first;
}

std::string facts_of(const OwnData& own, int rank) {
  return own.empty() ? "" : facts_text(*own.of_rank[static_cast<std::size_t>(rank)]);
}

// Each rank's words on its data: of training on the first line, of evaluation on the second. Ranks of several
// processes take this turn whatever their recipes say.
std::vector<std::string> facts_of_all(const Job& job, const JobOptions& options) {
  const auto facts = [&](int rank) {
    return facts_of(job.own_train, rank) + '\n' + facts_of(job.own_eval, rank);
  };
  if (options.tell_all) return options.tell_all(facts(options.rank));
  std::vector<std::string> all;
  for (int rank = 0; rank < job.world; ++rank) all.push_back(facts(rank));
  return all;
}

void open_all_data(Job& job, const JobOptions& options) {
  const Setting& data = job.recipe.at("data");
  job.train = open_data(job, options, data.at("train"), job.own_train);
  if (data.has("eval")) job.eval = open_data(job, options, data.at("eval"), job.own_eval);
  std::vector<std::string> of_train, of_eval;
  for (const std::string& text : facts_of_all(job, options)) {
    const std::size_t end = text.find('\n');
    of_train.push_back(text.substr(0, end));
    of_eval.push_back(text.substr(end + 1));
  }
  if (!job.own_train.empty()) settle(job.own_train, data.at("train"), of_train);
  if (!job.own_eval.empty()) settle(job.own_eval, data.at("eval"), of_eval);
}

void open_training_data(Job& job) {
  const Setting& section = job.recipe.at("data").at("train");
  job.global_batch = global_batch(section, job.world);
  require_deepspeed_rule(job.recipe, job.global_batch / job.world, job.world);
  require_batches(section, job.train_sampler(0));
  build_model(job.recipe.at("model"), job.spec(), job.make_model);
}

// The key of a data section that says what its samples look like.
const Setting& key_of_samples(const Setting& section) {
  for (const char* key : {"path", "shape"})
    if (section.has(key)) return section.at(key);
  return section.at("kind");
}

void require_like_training(const Setting& section, const SampleSpec& trained, const SampleSpec& evaluated) {
  const Setting& key =
      section.has("sequence_length") ? section.at("sequence_length") : key_of_samples(section);
  for (const auto& [array, shape] : trained.shapes) {
    if (!evaluated.shapes.count(array)) key.fail("there is no '" + array + "' in it, which [data.train] has");
    const std::string wanted = trained.describe(array), found = evaluated.describe(array);
    if (wanted != found)
      key.fail("expected samples as in [data.train], whose '" + array + "' is " + wanted + "; here it is " +
               found);
  }
}

// Labels may reach beyond those that were trained on where the recipe says how many the model tells apart.
void require_known_classes(const Job& job, const Setting& section) {
  SampleSpec spec = job.eval->spec();
  if (!job.own_eval.empty()) spec.classes = job.own_eval.classes;
  const int64_t trained = job.spec().classes, evaluated = spec.classes;
  const Setting& model = job.recipe.at("model");
  const bool given = model.has("num_classes") || model.has("vocab_size");
  if (!given && trained > 0 && evaluated > trained)
    section.at("kind").fail("its labels reach " + std::to_string(evaluated - 1) +
                            ", but [data.train] has only " + std::to_string(trained) + " classes");
  try {
    build_model(model, spec, job.make_model);
  } catch (const UserError& error) {
    key_of_samples(section).fail("the model cannot take it: " + std::string(error.what()));
  }
}

void require_budget_of_each_rank(const Job& job) {
  const Setting* budget = job.recipe.at("device").find("memory_budget_mb");
  if (!budget || !budget->is_array()) return;
  if (static_cast<int>(budget->array().size()) != job.world)
    budget->fail("expected one number for each of the " + std::to_string(job.world) +
                 " ranks, or one for all");
}

void open_evaluation_data(Job& job) {
  const Setting& section = job.recipe.at("data").at("eval");
  job.eval_batch = global_batch(section, job.world);
  if (job.eval_batch == 0) job.eval_batch = job.global_batch;
  require_batches(section, job.eval_sampler(0));
  require_like_training(section, job.spec(), job.eval->spec());
  require_known_classes(job, section);
}

// Early, so that the key that names a folder is blamed, and not the first file that cannot be written.
void make_folder(const Setting& named, const std::string& folder) {
  try {
    PosixDisk().make_folders(folder);
  } catch (const OperatingError& error) {
    named.fail(error.what());
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    named.fail(folder + ": cannot be written: " + std::strerror(errno));
}

void make_folders(const Job& job, const JobOptions& options) {
  const Setting& checkpoint = job.recipe.at("checkpoint");
  make_folder(options.run_dir.empty() ? job.recipe.at("run_name")
                                      : Setting(options.run_dir, "--run-dir", {"command line"}),
              job.run_dir);
  if (checkpoint.has("save_folder")) make_folder(checkpoint.at("save_folder"), job.checkpoints);
  const Setting& level = job.recipe.at("journal").at("level");
  if (level.text() != "off") make_folder(level, journals_folder(job.run_dir));
}

}  // namespace

Sampler Job::train_sampler(int rank) const {
  return sampler(recipe.at("data").at("train"), *train_of(rank), own_train, global_batch, *this, rank);
}

Sampler Job::eval_sampler(int rank) const {
  return sampler(recipe.at("data").at("eval"), *eval_of(rank), own_eval, eval_batch, *this, rank);
}

namespace {

const DatasetPtr& data_of(const DatasetPtr& shared, const OwnData& own, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  return own.empty() || !own.of_rank[r] ? shared : own.of_rank[r];
}

int64_t samples_of(const DatasetPtr& shared, const OwnData& own, int world) {
  if (!shared) return 0;
  return own.empty() ? shared->size() : own.samples * world;
}

}  // namespace

const DatasetPtr& Job::train_of(int rank) const { return data_of(train, own_train, rank); }
const DatasetPtr& Job::eval_of(int rank) const { return data_of(eval, own_eval, rank); }
int64_t Job::train_samples() const { return samples_of(train, own_train, world); }
int64_t Job::eval_samples() const { return samples_of(eval, own_eval, world); }

SampleSpec Job::spec() const {
  SampleSpec spec = train->spec();
  if (!own_train.empty()) spec.classes = own_train.classes;
  return spec;
}

uint64_t Job::data_digest() const { return own_train.empty() ? train->digest() : own_train.digest; }

int64_t Job::memory_budget(int rank) const {
  const Setting* budget = recipe.at("device").find("memory_budget_mb");
  if (!budget || budget->is_none()) return 0;
  const double mb = budget->is_array() ? budget->array().at(rank).number() : budget->number();
  return static_cast<int64_t>(mb * kBytesPerMb);
}

Job make_job(Setting recipe, const JobOptions& options) {
  Job job;
  job.recipe = std::move(recipe);
  job.world = options.world;
  job.nonce = options.nonce;
  job.run_dir = options.run_dir.empty() ? "runs/" + job.recipe.at("run_name").text() : options.run_dir;
  const Setting& checkpoint = job.recipe.at("checkpoint");
  job.checkpoints =
      checkpoint.has("save_folder") ? checkpoint.at("save_folder").text() : job.run_dir + "/checkpoints";
  job.resume = options.resume;
  job.from = start_from(job.recipe, options.resume);
  checkpoint_set(job.recipe);  // names that cannot be are told at the start
  require_cpu(job.recipe);
  require_budget_of_each_rank(job);
  choose_seed(job, options.fresh_seed);
  job.recipe_text = write_recipe(job.recipe);
  open_all_data(job, options);
  open_training_data(job);
  if (job.recipe.at("data").has("eval")) open_evaluation_data(job);
  if (options.makes_folders) make_folders(job, options);
  return job;
}

void begin_process(const Setting& recipe) {
  Meter::install();
  set_compute_threads(static_cast<int>(recipe.at("device").at("threads").integer()));
}

std::string batch_identity(const Job& job) {
  const Setting& grad_accum = job.recipe.at("train").at("grad_accum");
  const int64_t parts = grad_accum.is_integer() ? grad_accum.integer() : 1;
  const int64_t device = job.global_batch / job.world;
  std::string text = "global batch " + std::to_string(job.global_batch) + " = " + std::to_string(job.world) +
                     (job.world == 1 ? " rank x " : " ranks x ") + std::to_string(device);
  if (parts > 1)
    text += " = " + std::to_string(job.world) + " x " + std::to_string(parts) + " microbatches of " +
            std::to_string((device + parts - 1) / parts) + (device % parts ? " or fewer" : "");
  if (!grad_accum.is_integer() && !grad_accum.is_none()) text += ", grad_accum = " + grad_accum.toml();
  return text;
}

}  // namespace tutti
