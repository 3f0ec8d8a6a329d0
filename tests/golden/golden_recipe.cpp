#include "tests/golden/golden_recipe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "algorithms/catalog.h"
#include "tests/golden/composer_names.h"
#include "training/optimizers/options.h"
#include "training/schedules/schedule.h"
#include "training/settings.h"

namespace tutti {
namespace {

constexpr double kUsualLr = 0.001;  // of torch's and Composer's optimizers

std::string layers_of(const GoldenCase& c) {
  std::vector<std::string> layers = layer_texts(c.text("arch"));
  for (std::string& layer : layers) layer = '"' + layer + '"';
  return "[" + joined(layers) + "]";
}

bool is_list(KeyType type) {
  return type == KeyType::kIntegers || type == KeyType::kNumbers || type == KeyType::kTexts ||
         type == KeyType::kTimes;
}

std::string number_text(double value, KeyType type) {
  if (type == KeyType::kBoolean) return value != 0.0 ? "true" : "false";
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

// The value of a parameter as the recipe takes it for a key of such a type. Texts and numbers are
// distinguished by how they are stored: a time may be either.
std::string value_text(const GoldenCase& c, const std::string& attribute, KeyType type) {
  std::vector<std::string> items;
  if (c.is_text(attribute)) {
    const std::string text = c.text(attribute);
    for (const std::string& one : is_list(type) ? parts_of(text) : std::vector{text})
      items.push_back("'" + one + "'");
  } else {
    for (const double value : c.numbers(attribute)) items.push_back(number_text(value, type));
  }
  return items.size() == 1 && !is_list(type) ? items[0] : "[" + joined(items) + "]";
}

// A key that the catalog has not is written all the same: reading the recipe then fails, and names it.
KeyType type_of(const std::vector<Key>& keys, const std::string& name) {
  for (const Key& key : keys)
    if (key.name == name || std::ranges::count(key.aliases, name) > 0) return key.type;
  return KeyType::kAny;
}

std::string line(const GoldenCase& c, const std::string& attribute, const std::string& name,
                 const std::vector<Key>& keys) {
  return name + " = " + value_text(c, attribute, type_of(keys, name)) + "\n";
}

// A table that names a kind: parameters `prefix`name, `prefix`<key>, ...
std::string section_text(const GoldenCase& c, const std::string& prefix, const Catalog& catalog) {
  const std::string section = catalog.repeated ? "[[" + catalog.section + "]]" : "[" + catalog.section + "]";
  const std::string kind = recipe_kind(section, c.text(prefix + "name"));
  const std::vector<Key> keys = catalog.keys_of(catalog.find_entry(kind));
  std::string text = section + "\nkind = '" + kind + "'\n";
  for (const std::string& attribute : c.attributes())
    if (attribute.starts_with(prefix) && attribute != prefix + "name" && c.has(attribute) &&
        !is_of_no_number(attribute.substr(prefix.size())))
      text += line(c, attribute, attribute.substr(prefix.size()), keys);
  return text;
}

std::string optimizer_text(const GoldenCase& c) {
  std::string text = section_text(c, "opt.", optimizer_catalog());
  if (!c.has("opt.lr")) text += "lr = " + number_text(kUsualLr, KeyType::kNumber) + "\n";
  return text;
}

// Composer steps PyTorch's schedulers after every epoch, its own after every batch, unless configured
// otherwise.
std::string scheduler_text(const GoldenCase& c) {
  if (!c.has("sched.name")) return "";
  std::string text = section_text(c, "sched.", scheduler_catalog());
  if (!c.has("step_schedulers_every_batch")) return text;
  const bool every_batch = c.number("step_schedulers_every_batch") != 0.0;
  const bool is_composers = c.text("sched.name").starts_with("composer.");
  if (!is_composers || !every_batch) text += every_batch ? "step = 'batch'\n" : "step = 'epoch'\n";
  return text;
}

std::string algorithms_text(const GoldenCase& c) {
  std::string text;
  for (int i = 0; c.has("algo" + std::to_string(i) + ".name"); ++i)
    text += section_text(c, "algo" + std::to_string(i) + ".", algorithm_catalog());
  return text;
}

std::string train_text(const GoldenCase& c) {
  const std::vector<Key> keys = train_catalog().keys;
  std::string text = "[train]\n";
  for (const char* name :
       {"max_duration", "eval_interval", "scale_schedule_ratio", "device_train_microbatch_size"})
    if (c.has(name)) text += line(c, name, name, keys);
  return text;
}

std::string data_text(const std::string& which, const std::string& path, double batch) {
  return "[data." + which + "]\nkind = 'hdf5'\npath = '" + path + "'\ngroup = '" + which +
         "'\nbatch_size = " + number_text(batch, KeyType::kInteger) + "\n";
}

void expect_nothing_else(const GoldenCase& c) {
  std::set<std::string> parameters = {"arch",
                                      "batch_size",
                                      "device_train_microbatch_size",
                                      "draws",
                                      "eval_batch_size",
                                      "ema.smoothing_effective",
                                      "eval_interval",
                                      "final_requires_grad",
                                      "max_duration",
                                      "num_algorithms",
                                      "scale_schedule_ratio",
                                      "swa.completed",
                                      "swa.n_averaged",
                                      "step_schedulers_every_batch",
                                      "weights_atol"};
  for (const std::string& name : c.attributes())
    if (name.starts_with("opt.") || name.starts_with("sched.") || name.starts_with("algo"))
      parameters.insert(name);
  c.expect_only(parameters, {"weights", "x_train", "y_train", "x_eval", "y_eval", "draws"});
}

}  // namespace

std::vector<std::string> layer_texts(const std::string& arch) {
  static const std::regex item(R"(\s*\((\d+)\): (.*\)))"), bracket(R"(\s*(Sequential\()?\)?\s*)");
  std::istringstream lines(arch);
  std::vector<std::string> layers;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, item))
      layers.push_back(match[2].str());
    else if (!std::regex_match(line, bracket))
      throw std::logic_error("no test knows such a model: " + line);
  }
  return layers;
}

int64_t classes_of(const GoldenCase& c) {
  static const std::regex width(R"(out_(?:features|channels)=(\d+))");
  const std::string arch = c.text("arch");
  int64_t classes = c.tensor("in/y_train").max().item<int64_t>() + 1;
  int64_t last = 0;
  for (std::sregex_iterator found(arch.begin(), arch.end(), width), end; found != end; ++found)
    last = std::stoll((*found)[1]);
  return std::max(classes, last);
}

std::string recipe_text(const GoldenCase& c, const std::string& data, const std::string& weights,
                        Manner manner) {
  expect_nothing_else(c);
  const double batch = c.number("batch_size");
  std::string text = "seed = 1\n[checkpoint]\ninterval = '1ba'\n";
  if (manner == Manner::kComposers) text += "[compat]\ncomposer = true\n";
  text += "[model]\nkind = 'sequential'\nlayers = " + layers_of(c) + "\nweights = '" + weights + "'\n";
  text += data_text("train", data, batch);
  if (c.holds("in/x_eval"))
    text += data_text("eval", data, c.has("eval_batch_size") ? c.number("eval_batch_size") : batch);
  return text + optimizer_text(c) + scheduler_text(c) + train_text(c) + algorithms_text(c);
}

}  // namespace tutti
