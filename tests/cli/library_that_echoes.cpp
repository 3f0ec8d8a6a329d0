// Stands in for libtutti.so: prints the command and its options, and fails on request.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "commands/entry.h"
#include "runtime/error.h"

namespace tutti {
namespace {

void print(const std::string& line) { std::printf("%s\n", line.c_str()); }

int echo(const TrainOptions& options) {
  print("train path=" + options.recipe.path + " run_dir=" + options.run_dir + " resume=" + options.resume +
        " local_ranks=" + std::to_string(options.local_ranks));
  for (const std::string& one : options.recipe.overrides) print("set " + one);
  if (options.resume == "user error") throw UserError({"there.toml", 3}, "this is wrong");
  if (options.resume == "failure") throw std::runtime_error("the disk is on fire");
  return options.resume == "three" ? 3 : 0;
}

int echo(const EvalOptions& options) {
  print("eval path=" + options.recipe.path + " checkpoint=" + options.checkpoint);
  return 0;
}

int echo(const CheckOptions& options) {
  print("check path=" + options.recipe.path + " ranks=" + std::to_string(options.ranks) +
        " steps=" + std::to_string(options.steps) + " data=" + std::to_string(options.scan_data));
  return 0;
}

int echo(const CostOptions& options) {
  options.cost->text = "cost path=" + options.recipe.path;
  return 0;
}

int echo(const InspectOptions& options) {
  print("inspect path=" + options.path + " digest=" + std::to_string(options.digest));
  return 0;
}

int echo(const ExportOptions& options) {
  print("export path=" + options.path + " to=" + options.to + " to_hf=" + options.to_hf +
        " to_peft=" + options.to_peft + " trained=" + std::to_string(options.trained));
  return 0;
}

int echo(const ImportOptions& options) {
  print("import path=" + options.path + " recipe=" + options.recipe.path + " out=" + options.out);
  return 0;
}

int echo(const ContinueOptions& options) {
  print("generate path=" + options.path + " prompt=" + options.prompt +
        " length=" + std::to_string(options.length) + " top_k=" + std::to_string(options.top_k) +
        " seed=" + std::to_string(options.seed));
  return 0;
}

int echo(const SampleImagesOptions& options) {
  print("generate path=" + options.path + " output=" + options.output +
        " samples=" + std::to_string(options.samples) + " steps=" + std::to_string(options.steps) +
        " sampler=" + options.sampler + " seed=" + std::to_string(options.seed));
  return 0;
}

int echo(const TokenizeOptions& options) {
  std::string keys;
  for (const auto& [key, value] : options.keys) keys += ' ' + key + '=' + value;
  print("tokenize texts=" + options.texts + " tokenizer=" + options.tokenizer + " to=" + options.to + keys +
        " add_bos_token=" + std::to_string(options.add_bos_token) + " add_eos_token=" +
        std::to_string(options.add_eos_token) + " skip_bad=" + std::to_string(options.skip_bad));
  return 0;
}

int echo(const LrFindOptions& options) {
  print("lr-find path=" + options.recipe.path + " steps=" + std::to_string(options.steps) +
        " run_dir=" + options.run_dir);
  return 0;
}

int echo(const BatchFindOptions& options) {
  print("batch-find path=" + options.recipe.path + " steps=" + std::to_string(options.steps) +
        " most=" + std::to_string(options.most) + " ranks=" + std::to_string(options.ranks));
  return 0;
}

int echo(const ReplayOptions& options) {
  print("replay path=" + options.run_dir + " start=" + std::to_string(options.start) +
        " until=" + std::to_string(options.until.value_or(0)) +
        " break_at=" + std::to_string(options.break_at.value_or(0)) +
        " rank=" + std::to_string(options.rank) + " on_cpu=" + std::to_string(options.on_cpu));
  return 0;
}

int echo(const SimulateOptions& options) {
  print("simulate path=" + options.recipe.path + " ranks=" + std::to_string(options.ranks) +
        " seeds=" + std::to_string(options.first) + ".." + std::to_string(options.last) +
        " once=" + std::to_string(options.once) + " share_of=" + std::to_string(options.share_of));
  return 0;
}

int echo(const PredictOptions& options) {
  print("predict path=" + options.recipe.path + " checkpoint=" + options.checkpoint +
        " evaluator=" + options.evaluator + " data=" + options.data + " out=" + options.out +
        " top_k=" + std::to_string(options.top_k));
  return 0;
}

int echo(const Refusal& refusal) {
  print("refuse why=" + refusal.why);
  return 0;
}

}  // namespace
}  // namespace tutti

int tutti_run(const tutti::CommandOptions& command) {
  return std::visit([](const auto& options) { return tutti::echo(options); }, command);
}
