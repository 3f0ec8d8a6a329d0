#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tutti {

// A golden JSON file; null where the folder has none.
nlohmann::json golden_json(const std::string& file);

// Expects (gtest) no members but these, so that none is ignored in silence. `what` says of what.
void expect_members(const nlohmann::json& object, const std::set<std::string>& known,
                    const std::string& what);

// The same of the sections of a file, of which the table of what is not built yet may name some. This
// folder's file has all of `tested`; another folder's may hold a part.
void expect_sections(const nlohmann::json& file, const std::set<std::string>& tested,
                     const std::string& name);

}  // namespace tutti
