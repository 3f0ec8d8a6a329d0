#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_file.h"

namespace tutti {

// "io/recipe.cpp:12: what is wrong"; line 0 is left out.
using Findings = std::vector<std::string>;

// A rule of the house style, and a small tree that breaks it once, for the proof that it bites.
struct TidyRule {
  std::string name;
  Findings (*check)(const SourceTree&);
  SourceTree broken;
};

const std::vector<TidyRule>& tidy_rules();

std::string finding(const SourceFile& file, size_t line, const std::string& what);

// rules_of_text.cpp
Findings long_functions(const SourceTree& tree);
Findings long_files(const SourceTree& tree);
Findings long_lines(const SourceTree& tree);
Findings absolute_paths(const SourceTree& tree);
Findings commented_out_code(const SourceTree& tree);
Findings empty_names(const SourceTree& tree);
Findings headers_without_pragma_once(const SourceTree& tree);
Findings types_of_one_name(const SourceTree& tree);
Findings ill_named_probes(const SourceTree& tree);

// rules_of_includes.cpp
Findings forbidden_folders(const SourceTree& tree);
Findings circles_of_folders(const SourceTree& tree);
Findings test_device_outside_tests(const SourceTree& tree);
Findings third_party_outside_its_home(const SourceTree& tree);
Findings devices_outside_tensors(const SourceTree& tree);
Findings memory_touched_elsewhere(const SourceTree& tree);
Findings includes_not_from_the_root(const SourceTree& tree);
Findings own_header_not_first(const SourceTree& tree);

// rules_of_words.cpp
Findings unclear_words(const SourceTree& tree);
Findings pronouns_as_subjects(const SourceTree& tree);

// rules_of_build.cpp
Findings unlisted_sources(const SourceTree& tree);
Findings unlisted_folders(const SourceTree& tree);
Findings crowded_folders(const SourceTree& tree);

}  // namespace tutti
