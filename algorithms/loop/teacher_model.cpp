#include "algorithms/loop/teacher_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint/saved_state.h"
#include "io/formats/file_head.h"
#include "io/formats/zip_file.h"
#include "io/weights/weights.h"
#include "models/hub/section.h"
#include "models/loss.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kExported = "exported";
constexpr const char* kScript = "torchscript";

bool is_run(const std::string& path) try {
  return !checkpoints_at(PosixDisk(), path).empty();
} catch (const OperatingError&) {
  return false;
}

bool are_weights(const std::string& path) try {
  const PosixDisk disk;
  open_weights(disk, path);
  return true;
} catch (const std::exception&) {
  return false;
}

// The kind of a program's file, whose members are in a folder of any name; "" for other files.
std::string kind_of_program(const std::string& path) {
  const std::vector<uint8_t> head = file_head(path, 2);
  if (head != std::vector<uint8_t>{'P', 'K'}) return "";
  const ZipFile archive(path);
  const auto holds = [&](const std::string& record) {
    return std::ranges::any_of(archive.members(), [&](const auto& member) {
      const auto slash = member.name.find('/');
      return slash != std::string::npos && member.name.substr(slash + 1) == record;
    });
  };
  return holds("models/model.json") ? kExported : holds("constants.pkl") ? kScript : "";
}

[[noreturn]] void refuse_what_is_at(const Setting& path, bool is_folder) {
  std::string kind =
      is_folder ? "this folder has no checkpoint and no config.json" : "this file is none of them";
  if (are_weights(path.text()))
    kind =
        "there are weights alone, and a table with the keys of [model] says of which model: { kind = "
        "\"resnet\", weights = \"...\" }";
  path.fail(
      "expected a run's or a checkpoint's folder, a folder of Hugging Face's, or a program of torch.export "
      "or TorchScript; " +
      kind);
}

// The section of [model] for a path that is no run's.
Setting section_at(const Setting& path) {
  if (!std::filesystem::exists(path.text())) path.fail("there is no such file or folder");
  const bool is_folder = std::filesystem::is_directory(path.text());
  const std::string kind = !is_folder ? kind_of_program(path.text()) : is_hub_folder(path.text()) ? "hf" : "";
  if (kind.empty()) refuse_what_is_at(path, is_folder);
  Setting::Table section;
  section.emplace_back("kind", Setting(kind, path.path, path.position));
  section.emplace_back("path", path);
  return {std::move(section), path.path, path.position};
}

Setting without_absent(Setting section) {
  std::erase_if(section.table(), [](const auto& member) { return member.second.is_none(); });
  return section;
}

// Their values are read later.
void require_weights(const Setting& section) {
  const std::string& kind = section.at("kind").text();
  const bool is_program = kind == kExported || kind == kScript;
  const Setting weights = ModelKeys::kind().read(section).weights;
  if (!is_program && weights.is_none()) section.fail("weights is missing: a teacher has learned already");
  if (weights.is_none()) return;
  try {
    const PosixDisk disk;
    open_weights(disk, weights.text());
  } catch (const RunError& error) {
    weights.fail(error);
  }
}

void require_kind_of_tutti(const Setting& kind) {
  if (kind.text() == "program" || kind.text() == kPluginKind)
    kind.fail("its model is that of a " + kind.text() + ", and cannot be a teacher");
}

// What its run was trained on; without a run its loss says it.
void require_scores_of_a_class(const Setting& teacher, const TeacherModel& model) {
  const std::string refused = "its outputs are no scores of one class among all: ";
  if (model.saved.several_labels) teacher.fail(refused + "it was trained on several labels a sample");
  const Setting loss = ModelKeys::kind().read(model.section).loss;
  if (loss.is_none()) return;
  const LossTargets targets = make_loss(loss)->targets();
  const std::string is = "its loss, " + (loss.is_text() ? loss : loss.at("kind")).text() + ", is of ";
  if (targets == LossTargets::kValues) teacher.fail(refused + is + "values");
  if (targets == LossTargets::kLabels && model.checkpoint.folder.empty())
    teacher.fail(refused + is + "several labels; loss = \"cross_entropy\" in its table takes them for that");
}

TeacherModel model_of_run(const std::string& path, const State& run) {
  TeacherModel model;
  model.checkpoint = find_checkpoint(
      PosixDisk(), path, {[&run](const std::string& bad) { run.warn_on_rank_zero("ignored: " + bad); }});
  model.saved = state_of(model.checkpoint);
  const std::string& folder = model.checkpoint.folder;
  const Setting recipe = parse_recipe(model.saved.recipe, folder);
  model.section = resolve_section(model_catalog(), recipe.at("model"), {.folder = folder});
  require_kind_of_tutti(model.section.at("kind"));
  return model;
}

}  // namespace

TeacherModel find_teacher(const Setting& teacher, const State& run) {
  TeacherModel model;
  if (teacher.is_text() && is_run(teacher.text())) {
    model = model_of_run(teacher.text(), run);
  } else {
    const Setting section = without_absent(teacher.is_text() ? section_at(teacher) : teacher);
    model.section = resolve_section(model_catalog(), zoo_model(section, {}), {});
    require_kind_of_tutti(model.section.at("kind"));
    require_weights(model.section);
  }
  require_scores_of_a_class(teacher, model);
  return model;
}

}  // namespace tutti
