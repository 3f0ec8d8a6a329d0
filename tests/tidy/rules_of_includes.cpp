#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include "tests/tidy/rules.h"

namespace tutti {
namespace {

using Folders = std::set<std::string>;

// Which folders a folder may include besides itself (docs/architecture.md); tests and bench may include all.
const std::map<std::string, Folders>& may_include() {
  static const std::map<std::string, Folders> table = [] {
    std::map<std::string, Folders> t{
        {"runtime", {}},
        {"recipe", {"runtime"}},
        {"tensors", {"runtime"}},
        {"io", {"runtime", "recipe", "tensors"}},
        {"models", {"runtime", "recipe", "tensors", "io"}},
        {"collectives", {"runtime", "recipe", "tensors"}},
        {"analysis", {"runtime", "recipe", "io"}},
        {"data", {"runtime", "recipe", "tensors", "io"}},
        {"training", {"runtime", "recipe", "tensors", "io", "data", "models"}},
        {"sharding", {"runtime", "recipe", "tensors", "collectives", "models", "training"}},
        {"algorithms", {"runtime", "recipe", "tensors", "io", "data", "models", "training"}},
        {"cli", {"runtime", "recipe", "analysis"}},
    };
    Folders below = {"runtime",     "recipe", "tensors",  "io",       "data",
                     "collectives", "models", "training", "sharding", "algorithms"};
    t["job"] = below;
    below.insert("job");
    t["sim"] = below;
    below.erase("algorithms");
    t["actors"] = below;
    t["sim"].insert("actors");
    t["commands"] = t["sim"];
    t["commands"].insert({"sim", "analysis"});
    return t;
  }();
  return table;
}

// Includes of the thin executable beyond its folders, none of which needs libtorch: catalogs, the proposals
// of `init`, and the way into libtutti.so.
bool is_for_cli(const std::string& include) {
  static const Folders headers{"\"commands/entry.h\"",       "\"job/names/foreign_names.h\"",
                               "\"job/recipe_catalogs.h\"",  "\"io/run_paths.h\"",
                               "\"io/replaced_file.h\"",     "\"io/formats/recipe_schema.h\"",
                               "\"io/hdf5/hdf5_listing.h\"", "\"io/exported/input_sizes.h\"",
                               "\"data/proposals/look.h\"",  "\"data/proposals/proposal.h\""};
  return headers.count(include) > 0 || include.ends_with("catalog.h\"");
}

// The folder that an include of ours names, or "" for a third party's.
std::string included_folder(const std::string& include) {
  if (include.empty() || include[0] != '"') return "";
  const std::string folder = include.substr(1, include.find('/') - 1);
  return may_include().count(folder) > 0 ? folder : "";
}

using IncludeTest = std::string (*)(const SourceFile& file,
                                    const std::string& include);  // "" or what is wrong

Findings each_include(const SourceTree& tree, IncludeTest test) {
  Findings findings;
  for (const SourceFile& file : tree) {
    for (size_t i = 0; i < file.includes.size(); ++i) {
      if (file.includes[i].empty()) continue;
      const std::string what = test(file, file.includes[i]);
      if (!what.empty()) findings.push_back(finding(file, i + 1, what));
    }
  }
  return findings;
}

std::string against_the_arrows(const SourceFile& file, const std::string& include) {
  const std::string target = included_folder(include);
  const auto row = may_include().find(file.folder());
  if (target.empty() || target == file.folder() || row == may_include().end()) return "";
  if (file.folder() == "cli" && is_for_cli(include)) return "";
  return row->second.count(target) > 0 ? "" : file.folder() + " may not include " + target;
}

// The test device stays a library that is opened by name, as a GPU's is.
std::string test_device_in_the_product(const SourceFile& file, const std::string& include) {
  const bool names = include.starts_with("\"tests/device/") && file.folder() != "tests";
  return names ? include + " is for tests alone" : "";
}

// A third party's header by a pattern over its name, and the paths of ours in which it is at home.
struct Home {
  std::regex header;
  std::regex path;
};

const std::vector<Home>& homes() {
  static const std::vector<Home> table = [] {
    std::vector<Home> homes;
    const auto at_home = [&](const char* header, const char* path) {
      homes.push_back({std::regex(header), std::regex(path)});
    };
    at_home("^mpi\\.h", "^collectives/");
    at_home("^nccl\\.h", "^collectives/nccl/");
    at_home("^(cuda|c10/cuda|ATen/cuda)", "^(collectives/nccl/|tensors/cuda/)");
    at_home("^(hdf5|H5[A-Za-z]*)\\.h|^nlohmann/", "^io/");
    at_home("^(zlib|zstd)\\.h", "^io/");
    at_home("^(jpeglib|jerror|png|tiffio)\\.h|^webp/", "^data/images/");
    at_home("^caffe2/", "^io/");
    at_home("^onig", "^data/tokenizers/");
    at_home("^toml\\+\\+/", "^recipe/");
    at_home("^yaml-cpp/", "^cli/convert/");
    at_home("^spdlog/", "^runtime/log\\.cpp");
    at_home("^CLI/", "^(cli|commands/program)/");
    at_home("^(ATen|torch|c10)/", "^(?!runtime/|cli/)");
    return homes;
  }();
  return table;
}

std::string away_from_home(const SourceFile& file, const std::string& include) {
  const std::string name = include.substr(1, include.size() - 2);
  if (name == "torch/torch.h") return "torch/torch.h costs a minute a source; include the narrowest header";
  if (may_include().count(file.folder()) == 0) return "";
  for (const Home& home : homes()) {
    if (std::regex_search(name, home.header) && !std::regex_search(file.path, home.path)) {
      return name + " is not at home in " + file.folder();
    }
  }
  return "";
}

// Where the product may name kinds of devices: beyond that, code is alike for all of them.
bool may_name_devices(const SourceFile& file) {
  return may_include().count(file.folder()) == 0 || file.folder() == "tensors" ||
         file.path.starts_with("collectives/nccl/");
}

// Who may read and write a tensor's memory on the host, which cannot touch a device's: folders whose tensors
// are the host's, or that look where a tensor is, and files that made the tensor on the host themselves.
bool may_touch_memory(const SourceFile& file) {
  static const std::set<std::string> folders{"tensors", "collectives", "data", "io"};
  static const std::set<std::string> files{
      "actors/compute/exchange.cpp",
      "actors/compute/graph_runner.cpp",
      "actors/compute/unsharding.cpp",
      "actors/messages/verdict.cpp",
      "algorithms/augmentation/sample_mixing.cpp",
      "algorithms/surgery/gyro_dropout.cpp",
      "commands/predictions/output_table.cpp",
      "commands/predictions/prediction_file.cpp",
      "commands/sample_images.cpp",
      "models/diffusion/drawn_noise.cpp",
      "models/diffusion/noise_schedule.cpp",
      "models/generation.cpp",
      "models/layers/layer.cpp",
      "models/layers/norm.cpp",
      "models/layers/residual_block.cpp",
      "models/layers/statistics_rows.cpp",
      "models/losses.cpp",
      "models/torch/norms.cpp",
      "sharding/gradient_buckets.cpp",
      "sharding/sharded_parameters.cpp",
      "sharding/unit_gradients.cpp",
      "sim/environment/tracking_dataset.h",
      "training/evaluation/answers.cpp",
      "training/evaluation/evaluation.cpp",
      "training/metrics/answers.cpp",
      "training/metrics/classification.cpp",
      "training/optimizers/adam.cpp",
      "training/optimizers/in_parts.cpp",
      "training/optimizers/optimizer.cpp",
      "training/optimizers/optimizer.h",
      "training/optimizers/square_sums.cpp",
  };
  return may_include().count(file.folder()) == 0 || folders.count(file.folder()) > 0 ||
         files.count(file.path) > 0;
}

std::string stem(const std::string& path) { return path.substr(0, path.rfind('.')); }

std::size_t deepest(const SourceTree& tree) {
  std::size_t most = 0;
  for (const SourceFile& file : tree) most = std::max<std::size_t>(most, std::ranges::count(file.path, '/'));
  return most;
}

// The first `depth` folders of a file's path.
std::string folder_of(const std::string& path, std::size_t depth) {
  std::size_t end = path.find('/');
  for (std::size_t i = 1; i < depth && path.find('/', end + 1) != path.npos; ++i)
    end = path.find('/', end + 1);
  return path.substr(0, end);
}

using Arrows = std::map<std::string, Folders>;  // from a folder to those that it includes

Arrows arrows_between_folders(const SourceTree& tree, std::size_t depth) {
  Arrows arrows;
  for (const SourceFile& file : tree) {
    if (may_include().count(file.folder()) == 0) continue;
    const std::string from = folder_of(file.path, depth);
    for (const std::string& include : file.includes) {
      if (included_folder(include).empty()) continue;
      const std::string to = folder_of(include.substr(1), depth);
      if (to != from) arrows[from].insert(to);
    }
  }
  return arrows;
}

// The shortest way by which a folder includes itself through folders that come later by name, as
// "io/a -> io/b -> io/a". Empty if there is none.
std::string shortest_circle(const Arrows& arrows, const std::string& first) {
  std::map<std::string, std::string> path_to{{first, first}};
  std::vector<std::string> reached{first};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto row = arrows.find(reached[i]);
    if (row == arrows.end()) continue;
    const std::string path = path_to[reached[i]] + " -> ";
    for (const std::string& to : row->second) {
      if (to == first) return path + first;
      if (to > first && path_to.emplace(to, path + to).second) reached.push_back(to);
    }
  }
  return "";
}

}  // namespace

Findings forbidden_folders(const SourceTree& tree) { return each_include(tree, against_the_arrows); }
Findings test_device_outside_tests(const SourceTree& tree) {
  return each_include(tree, test_device_in_the_product);
}
Findings third_party_outside_its_home(const SourceTree& tree) { return each_include(tree, away_from_home); }

// The meta device has no memory, and kernels of no kind.
Findings devices_outside_tensors(const SourceTree& tree) {
  static const std::regex device(R"(\bk(CPU|CUDA|PrivateUse1)\b|\bDeviceType::\w+)");
  Findings findings;
  std::smatch match;
  for (const SourceFile& file : tree) {
    if (may_name_devices(file)) continue;
    for (size_t i = 0; i < file.code.size(); ++i)
      if (std::regex_search(file.code[i], match, device))
        findings.push_back(finding(file, i + 1, match[0].str() + ": tensors/device.h knows devices"));
  }
  return findings;
}

Findings memory_touched_elsewhere(const SourceTree& tree) {
  static const std::regex touches(R"(\b(const_|mutable_)?data_ptr\b|\baccessor<)");
  Findings findings;
  for (const SourceFile& file : tree) {
    if (may_touch_memory(file)) continue;
    for (size_t i = 0; i < file.code.size(); ++i)
      if (std::regex_search(file.code[i], touches))
        findings.push_back(finding(file, i + 1, "a tensor's memory may be a device's (may_touch_memory)"));
  }
  return findings;
}

// At each depth, the files of deeper folders count as those of the folder above them; files that stand in a
// folder above, beside its subfolders, are a folder of their own.
Findings circles_of_folders(const SourceTree& tree) {
  std::set<std::string> circles;
  for (std::size_t depth = 1; depth <= deepest(tree); ++depth) {
    const Arrows arrows = arrows_between_folders(tree, depth);
    for (const auto& [folder, targets] : arrows)
      if (const auto circle = shortest_circle(arrows, folder); !circle.empty()) circles.insert(circle);
  }
  return {circles.begin(), circles.end()};
}

Findings includes_not_from_the_root(const SourceTree& tree) {
  std::set<std::string> paths;
  for (const SourceFile& file : tree) paths.insert('"' + file.path + '"');
  Findings findings;
  for (const SourceFile& file : tree) {
    for (size_t i = 0; i < file.includes.size(); ++i) {
      const std::string& include = file.includes[i];
      if (include.empty() || include[0] == '<' || paths.count(include) > 0) continue;
      findings.push_back(finding(file, i + 1, include + " is no file under the root"));
    }
  }
  return findings;
}

Findings own_header_not_first(const SourceTree& tree) {
  std::set<std::string> headers;
  for (const SourceFile& file : tree) {
    if (file.is_header()) headers.insert(stem(file.path));
  }
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!file.is_cpp() || file.is_header() || headers.count(stem(file.path)) == 0) continue;
    for (size_t i = 0; i < file.includes.size(); ++i) {
      if (file.includes[i].empty()) continue;
      const std::string own = '"' + stem(file.path) + ".h\"";
      if (file.includes[i] != own) findings.push_back(finding(file, i + 1, own + " comes first"));
      break;
    }
  }
  return findings;
}

}  // namespace tutti
