#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "io/checkpoint.h"
#include "io/hdf5_writer.h"
#include "io/safetensors.h"
#include "runtime/disk.h"
#include "sim/local_run.h"
#include "tests/actors/sleeping_world.h"
#include "tests/golden/composer_names.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kFile = "trainer.h5";
constexpr int64_t kClasses = 10;

// "Flatten(start_dim=1, end_dim=-1)", ...: the items of what torch prints of an nn.Sequential.
std::string layers_of(const GoldenCase& c) {
  static const std::regex item(R"(\s*\((\d+)\): (.*))");
  std::istringstream lines(c.text("arch"));
  std::string list;
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, item)) list += (list.empty() ? "\"" : ", \"") + match[2].str() + "\"";
  return "[" + list + "]";
}

std::string value_text(const GoldenCase& c, const std::string& attribute) {
  const std::string key = attribute.substr(attribute.find('.') + 1);
  if (key == "milestones") {
    std::string list;
    std::istringstream in(c.text(attribute));
    for (std::string one; std::getline(in, one, ',');) list += (list.empty() ? "'" : ", '") + one + "'";
    return "[" + list + "]";
  }
  if (key.starts_with("t_") && key != "t_mult") return "'" + c.text(attribute) + "'";
  if (key == "step_size" || key == "decay_period") return "'" + c.text(attribute) + "'";
  if (key == "scale_warmup" || key == "nesterov" || key == "amsgrad")
    return c.number(attribute) != 0.0 ? "true" : "false";
  std::ostringstream number;
  number.precision(17);
  const auto numbers = c.numbers(attribute);
  if (numbers.size() > 1)
    number << "[" << numbers[0] << ", " << numbers[1] << "]";
  else
    number << numbers[0];
  return number.str();
}

std::string section_of(const GoldenCase& c, const std::string& prefix, const std::string& kind) {
  std::string text = "kind = '" + kind + "'\n";
  for (const std::string& attribute : c.attributes())
    if (attribute.starts_with(prefix) && attribute != prefix + "name" && c.has(attribute))
      text += attribute.substr(prefix.size()) + " = " + value_text(c, attribute) + "\n";
  return text;
}

// The case as files that the commands take: data, weights and a recipe. Every batch leaves a checkpoint.
class CaseFiles {
 public:
  explicit CaseFiles(const GoldenCase& c) {
    PosixDisk disk;
    const Hdf5Attributes classes = {{"num_classes", kClasses}};
    write_hdf5(disk, data_,
               {hdf5_array("train/input", c.tensor("in/x_train").contiguous()),
                hdf5_array("train/target", c.tensor("in/y_train").contiguous(), classes),
                hdf5_array("eval/input", c.tensor("in/x_eval").contiguous()),
                hdf5_array("eval/target", c.tensor("in/y_eval").contiguous(), classes)});
    Safetensors weights;
    for (const std::string& name : c.names("in/weights")) {
      const at::Tensor value = c.tensor("in/weights/" + name);
      weights.tensors[name] = name.ends_with("num_batches_tracked") ? value.reshape({}) : value;
    }
    write_safetensors(disk, weights_, weights);
    write_text(recipe(), recipe_text(c));
  }

  std::string recipe() const { return folder_.path("recipe.toml"); }
  std::string run(const std::string& name) const { return folder_.path(name); }

 private:
  std::string recipe_text(const GoldenCase& c) const {
    const auto data = [&](const std::string& which, const char* batch) {
      return "[data." + which + "]\nkind = 'hdf5'\npath = '" + data_ + "'\ngroup = '" + which +
             "'\nbatch_size = " + std::to_string(static_cast<int>(c.number(batch))) + "\n";
    };
    std::string text =
        "seed = 1\n[compat]\ncomposer = true\n[model]\nkind = 'sequential'\nlayers = " + layers_of(c) +
        "\nweights = '" + weights_ + "'\n" + data("train", "batch_size") + data("eval", "eval_batch_size") +
        "[checkpoint]\ninterval = '1ba'\n[optimizer]\n" +
        section_of(c, "opt.", recipe_kind("[optimizer]", c.text("opt.name")));
    if (c.has("sched.name"))
      text += "[scheduler]\n" + section_of(c, "sched.", recipe_kind("[scheduler]", c.text("sched.name")));
    text += "[train]\nmax_duration = '" + c.text("max_duration") + "'\neval_interval = '" +
            c.text("eval_interval") + "'\nscale_schedule_ratio = " + value_text(c, "scale_schedule_ratio") +
            "\n";
    if (c.has("device_train_microbatch_size"))
      text += "device_train_microbatch_size = " +
              std::to_string(static_cast<int>(c.number("device_train_microbatch_size"))) + "\n";
    return text;
  }

  Scratch folder_;
  std::string data_ = folder_.path("data.h5");
  std::string weights_ = folder_.path("weights.safetensors");
};

void expect_weights(const GoldenCase& c, const std::string& checkpoint, const std::string& golden) {
  const auto tensors = read_checkpoint(PosixDisk(), checkpoint).tensors;
  for (const std::string& name : c.names(golden))
    c.expect_close(tensors.at(std::string(kModelPrefix) + name), golden + "/" + name);
}

void expect_golden(const GoldenCase& c, const std::string& run) {
  std::map<std::string, std::vector<double>> series;
  std::istringstream lines(read_text(run + "/metrics.jsonl"));
  const std::map<std::string, std::string> names = {{"loss", "loss"},
                                                    {"lr", "lr"},
                                                    {"metrics/train/MulticlassAccuracy", "train_accuracy"},
                                                    {"metrics/eval/MulticlassAccuracy", "eval_accuracy"},
                                                    {"metrics/eval/CrossEntropy", "eval_cross_entropy"}};
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    for (const auto& [own, golden] : names)
      if (fields.contains(own)) series[golden].push_back(fields[own].get<double>());
    if (fields.contains("metrics/eval/CrossEntropy"))
      series["eval_batch"].push_back(fields["step"].get<double>());
  }
  EXPECT_EQ(series.size(), names.size() + 1);
  for (const auto& [name, values] : series) c.expect_close(at::tensor(values, at::kDouble), "out/" + name);
  expect_weights(c, run + "/checkpoints/ep0-ba1", "out/weights_batch1");
  expect_weights(c, run + "/checkpoints/latest", "out/weights");
}

class GoldenTrainer : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTrainer, TrainsAsComposerDoes) {
  const GoldenCase c(golden_path(kFile), GetParam());
  if (c.number("num_algorithms") > 0) GTEST_SKIP() << "no algorithms yet";
  const CaseFiles files(c);
  LocalRunOptions options;
  options.ranks = 1;
  options.quiet = true;
  options.run_dir = files.run("run");
  train_in_one_process(recipe_of(read_text(files.recipe())), options);
  expect_golden(c, options.run_dir);
}

// On two ranks too, but for batch normalisation, which sees a rank's part of a batch.
TEST_P(GoldenTrainer, TheCommandTrainsAsComposerDoes) {
  const GoldenCase c(golden_path(kFile), GetParam());
  if (c.number("num_algorithms") > 0) GTEST_SKIP() << "no algorithms yet";
  const CaseFiles files(c);
  const bool normalises = c.text("arch").find("BatchNorm") != std::string::npos;
  const std::string said = files.run("said");
  for (int ranks = 1; ranks <= (normalises ? 1 : 2); ++ranks) {
    const std::string run = files.run("run-" + std::to_string(ranks));
    const std::string launcher =
        ranks == 1 ? "" : TUTTI_SOURCE_DIR "/tools/mpirun.sh -np " + std::to_string(ranks) + " ";
    const std::string command = launcher + TUTTI_BUILD_DIR "/tutti train " + files.recipe() + " --run-dir " +
                                run + " > " + said + " 2>&1 < /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << read_text(said);
    expect_golden(c, run);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTrainer, testing::ValuesIn(golden_cases(golden_path(kFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTrainer);

}  // namespace
}  // namespace tutti
