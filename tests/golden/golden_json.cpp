#include "tests/golden/golden_json.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/golden/golden_file.h"
#include "tests/golden/not_built.h"

namespace tutti {

using nlohmann::json;

json golden_json(const std::string& file) {
  std::ifstream opened(golden_path(file));
  return opened ? json::parse(opened) : json();
}

void expect_members(const json& object, const std::set<std::string>& known, const std::string& what) {
  ASSERT_TRUE(object.is_object()) << what;
  for (const auto& [name, value] : object.items())
    EXPECT_TRUE(known.contains(name)) << what << ": no test knows '" << name << "'";
}

void expect_sections(const json& file, const std::set<std::string>& tested, const std::string& name) {
  std::set<std::string> known = tested;
  for (const auto& [section, value] : file.items())
    if (is_not_built(name + ": " + section)) known.insert(section);
  expect_members(file, known, name);
  EXPECT_FALSE(file.empty()) << name;
  if (!is_own_folder()) return;
  for (const std::string& section : tested) EXPECT_TRUE(file.contains(section)) << name << ": " << section;
}

}  // namespace tutti
