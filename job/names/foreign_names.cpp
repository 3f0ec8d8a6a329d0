#include "job/names/foreign_names.h"

#include <initializer_list>

#include "algorithms/catalog.h"
#include "recipe/glossary.h"
#include "runtime/error.h"

namespace tutti {

extern const char kComposerNames[];
extern const char kPyTorchNames[];
extern const char kFoundryNames[];
extern const char kHuggingFaceNames[];

namespace {

using ForeignNames = std::vector<ForeignName>;

// The headings of a table are the origins of its names.
void add_table(ForeignNames& names, const std::string& file, const char* table) {
  for (const GlossaryEntry& entry : read_glossary(file, table)) {
    TUTTI_ASSERT(!entry.heading.empty() && entry.places.size() < 2,
                 file + ": " + entry.names[0] + " has no origin, or two places");
    const std::string target = entry.places.empty() ? "" : entry.places[0];
    for (const std::string& name : entry.names) names.push_back({name, target, entry.text, entry.heading});
  }
}

// Composer's classes and functions, as the entries of the algorithms name them.
void add_algorithms(ForeignNames& names) {
  for (const Entry& entry : algorithm_catalog().entries) {
    const Origin& origin = entry.origin;
    if (origin.composer.empty()) continue;
    names.push_back({origin.composer, "[[algorithms]] kind = \"" + entry.name + '"'});
    for (const std::string& function : origin.functions) names.push_back({function, origin.header});
  }
}

void add_composer(ForeignNames& names) {
  add_table(names, "job/names/composer.txt", kComposerNames);
  add_algorithms(names);
}

void add_pytorch(ForeignNames& names) { add_table(names, "job/names/pytorch.txt", kPyTorchNames); }

void add_foundry(ForeignNames& names) { add_table(names, "job/names/llm_foundry.txt", kFoundryNames); }

void add_hugging_face(ForeignNames& names) {
  add_table(names, "job/names/huggingface.txt", kHuggingFaceNames);
}

ForeignNames names_from(std::initializer_list<void (*)(ForeignNames&)> programs) {
  ForeignNames names;
  for (const auto& add_program : programs) add_program(names);
  return names;
}

}  // namespace

const std::vector<ForeignName>& composer_names() {
  static const ForeignNames names = names_from({add_composer});
  return names;
}

const std::vector<ForeignName>& foundry_names() {
  static const ForeignNames names = names_from({add_foundry});
  return names;
}

const std::vector<ForeignName>& foreign_names() {
  static const ForeignNames names = names_from({add_composer, add_pytorch, add_foundry, add_hugging_face});
  return names;
}

}  // namespace tutti
