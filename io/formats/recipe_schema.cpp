#include "io/formats/recipe_schema.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "io/json/json_setting.h"
#include "recipe/key_check.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

Json number_schema(const Key& key, const char* type) {
  Json out = {{"type", type}};
  const Range& range = key.range;
  if (std::isfinite(range.low)) out[range.above ? "exclusiveMinimum" : "minimum"] = range.low;
  if (std::isfinite(range.high)) out[range.below ? "exclusiveMaximum" : "maximum"] = range.high;
  return out;
}

bool has_unit(const Key& key, const std::string& unit) {
  return key.units.empty() || std::ranges::count(key.units, unit) > 0;
}

std::string either_case(const std::string& text) {
  std::string out;
  for (const char c : text) out += std::string("[") + c + static_cast<char>(c - 'a' + 'A') + ']';
  return out;
}

// As key_check.h reads a time: "20ep", " 1_000 ba", "1e6tok", and "1h20m40s" where seconds are allowed.
Json time_schema(const Key& key) {
  std::string units;
  for (const char* unit : {"iter", "ep", "ba", "sp", "tok", "dur", "sec"})
    if (has_unit(key, unit)) units += (units.empty() ? "" : "|") + either_case(unit);
  std::string pattern = "^ *\\+? *[0-9][0-9_.]*([eE][+-]?[0-9]+)? *(" + units + ") *$";
  if (has_unit(key, "sec")) pattern += "|^([0-9]+[hH])?([0-9]+[mM])?([0-9]+[sS])?$";
  Json text = {{"type", "string"}, {"pattern", pattern}};
  if (!has_unit(key, "ep")) return text;
  return {{"anyOf", {{{"type", "integer"}, {"minimum", 0}}, text}}};
}

Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json one_or_list(const Json& schema) { return {{"anyOf", {schema, list_of(schema)}}}; }

Json named_texts() {
  return {{"type", "object"}, {"minProperties", 1}, {"additionalProperties", {{"type", "string"}}}};
}

Json step_pairs(const Key& key) {
  Json pair = {{"type", "array"}, {"minItems", 2}, {"maxItems", 2}};
  pair["items"] = {{{"type", "integer"}, {"minimum", 0}}, number_schema(key, "integer")};
  return {{"type", "array"}, {"minItems", 1}, {"items", pair}};
}

Json choices_schema(const Key& key) {
  Json values = Json::array();
  for (const auto& choice : key.choices)
    values.push_back(key.type == KeyType::kInteger   ? Json(std::stoll(choice))
                     : key.type == KeyType::kBoolean ? Json(choice == "true")
                                                     : Json(choice));
  for (const auto& [name, choice] : key.synonyms) values.push_back(name);
  return {{"enum", values}};
}

std::string definition_name(const Catalog& tables) {
  return tables.noun.empty() ? tables.section : tables.noun;
}

std::string definition_of(const Catalog& tables) { return "#/definitions/" + definition_name(tables); }

Json names_of(const Entry& entry) {
  Json names = {entry.name};
  if (!entry.origin.composer.empty()) names.push_back(entry.origin.composer);
  return names;
}

Json names_of_kinds(const Catalog& catalog) {
  Json names = Json::array();
  for (const auto& entry : catalog.entries)
    if (entry.refusal.empty())
      for (const auto& name : names_of(entry)) names.push_back(name);
  return {{"enum", names}};
}

Json type_schema(const Key& key) {
  if (!key.choices.empty()) {
    const bool list = key.type == KeyType::kTexts || key.type == KeyType::kIntegers;
    return list ? list_of(choices_schema(key)) : choices_schema(key);
  }
  switch (key.type) {
    case KeyType::kBoolean:
      return {{"type", "boolean"}};
    case KeyType::kInteger:
      return number_schema(key, "integer");
    case KeyType::kNumber:
      return number_schema(key, "number");
    case KeyType::kText:
      return {{"type", "string"}};
    case KeyType::kPath:
      if (!key.tables) return {{"type", "string"}};
      return {{"anyOf", {{{"type", "string"}}, {{"$ref", definition_of(*key.tables)}}}}};
    case KeyType::kTime:
      return time_schema(key);
    case KeyType::kIntegers:
      return list_of(number_schema(key, "integer"));
    case KeyType::kNumbers:
      return list_of(number_schema(key, "number"));
    case KeyType::kTexts:
      return list_of({{"type", "string"}});
    case KeyType::kTimes:
      return list_of(time_schema(key));
    case KeyType::kNumberOrNumbers:
      return one_or_list(number_schema(key, "number"));
    case KeyType::kIntegerOrIntegers:
      return one_or_list(number_schema(key, "integer"));
    case KeyType::kIntegerOrSteps:
      return {{"anyOf", {number_schema(key, "integer"), step_pairs(key)}}};
    case KeyType::kBooleanIntegerOrTexts:
      return {
          {"anyOf", {{{"type", "boolean"}}, number_schema(key, "integer"), list_of({{"type", "string"}})}}};
    case KeyType::kNamedTexts:
      return named_texts();
    case KeyType::kTextOrTexts:
      return one_or_list({{"type", "string"}});
    case KeyType::kTextsOrNamedTexts:
      return {{"anyOf", {list_of({{"type", "string"}}), named_texts()}}};
    case KeyType::kTable:
      return {{"$ref", definition_of(*key.tables)}};
    case KeyType::kKindOrTable:
      return {{"anyOf", {names_of_kinds(*key.tables), {{"$ref", definition_of(*key.tables)}}}}};
    case KeyType::kTables:
      return {{"type", "array"}, {"minItems", 1}, {"items", {{"$ref", definition_of(*key.tables)}}}};
    case KeyType::kAny:
      return Json::object();
  }
  return Json::object();
}

Json key_schema(const Key& key) {
  Json out = type_schema(key);
  if (!key.words.empty()) out = {{"anyOf", {out, {{"enum", key.words}}}}};
  out["description"] = key.doc + ": " + key.expects();
  if (!key.required() && !key.may_be_absent()) out["default"] = json_of(fallback_value(key, key.name, {}));
  return out;
}

// The keys of a table under all their names.
void add_properties(Json& properties, const std::vector<Key>& keys) {
  for (const auto& key : keys) {
    if (key.refused()) continue;
    properties[key.name] = key_schema(key);
    for (const auto& alias : key.aliases) {
      properties[alias] = properties[key.name];
      properties[alias]["description"] =
          "another name of " + key.name + "; " + key.doc + ": " + key.expects();
      properties[alias].erase("default");
    }
  }
}

Json presence_of(const Key& key) {
  Json any = {{{"required", {key.name}}}};
  for (const auto& alias : key.aliases) any.push_back({{"required", {alias}}});
  return any.size() == 1 ? any[0] : Json{{"anyOf", any}};
}

void add_presences(Json& all, const std::vector<Key>& keys) {
  for (const auto& key : keys)
    if (key.required() && !key.refused()) all.push_back(presence_of(key));
}

Json presence_named(const Catalog& catalog, const std::string& name) {
  for (const auto& key : catalog.keys)
    if (key.name == name) return presence_of(key);
  return {{"required", {name}}};
}

Json alternatives_schema(const Catalog& catalog, const Alternatives& alternatives) {
  Json schemas = Json::array();
  for (const auto& name : alternatives.keys) schemas.push_back(presence_named(catalog, name));
  if (alternatives.required) return {{"oneOf", schemas}};
  return {{"not", {{"allOf", schemas}}}};
}

// Properties of all kinds, for completion: of keys that differ between kinds only the description.
Json shared_properties(const Catalog& catalog) {
  Json shared;
  add_properties(shared, catalog.keys);
  for (const auto& entry : catalog.entries) {
    if (!entry.refusal.empty()) continue;
    Json own;
    add_properties(own, entry.keys);
    for (const auto& [name, schema] : own.items()) {
      const bool differs = shared.contains(name) && shared[name] != schema;
      shared[name] = differs ? Json{{"description", schema["description"]}} : schema;
    }
  }
  return shared;
}

Json names_in(const Json& properties) {
  Json names = Json::array();
  for (const auto& [name, schema] : properties.items()) names.push_back(name);
  return names;
}

// A kind that is named as a key that it must have may be left out beside the key.
bool is_implied(const Entry& entry) {
  return std::ranges::any_of(entry.keys,
                             [&](const Key& key) { return key.name == entry.name && key.required(); });
}

// If the kind is this one: its keys and no others.
Json kind_rule(const Catalog& catalog, const Entry& entry, const Json& shared) {
  Json properties, only, all = Json::array();
  add_properties(properties, catalog.keys_of(&entry));
  add_presences(all, entry.keys);
  for (const auto& [name, schema] : properties.items())
    if (shared[name] != schema) only[name] = schema;
  Json names = names_in(properties);
  names.push_back("kind");
  Json condition = {{"properties", {{"kind", {{"enum", names_of(entry)}}}}}};
  if (entry.name != catalog.default_kind) condition["required"] = {is_implied(entry) ? entry.name : "kind"};
  Json then = {{"propertyNames", {{"enum", names}}}};
  if (!only.empty()) then["properties"] = only;
  if (!all.empty()) then["allOf"] = all;
  return {{"if", condition}, {"then", then}};
}

Json kind_schema(const Catalog& catalog) {
  std::string text = "the " + catalog.noun + ':';
  for (const auto& entry : catalog.entries)
    if (entry.refusal.empty()) text += '\n' + entry.name + ": " + entry.doc;
  Json out = names_of_kinds(catalog);
  out["description"] = text;
  if (!catalog.default_kind.empty() && !catalog.may_be_absent()) out["default"] = catalog.default_kind;
  return out;
}

Json table_schema(const Catalog& catalog) {
  Json properties = shared_properties(catalog), all = Json::array();
  add_presences(all, catalog.keys);
  for (const auto& alternatives : catalog.alternatives)
    all.push_back(alternatives_schema(catalog, alternatives));
  for (const auto& entry : catalog.entries)
    if (entry.refusal.empty()) all.push_back(kind_rule(catalog, entry, properties));
  Json out = {{"type", "object"}, {"description", catalog.doc}};
  out["properties"] = Json::object();
  if (!catalog.entries.empty()) out["properties"]["kind"] = kind_schema(catalog);
  for (auto& [name, schema] : properties.items()) out["properties"][name] = schema;
  const bool needs_kind = catalog.default_kind.empty() || catalog.may_be_absent();
  const auto implied = std::ranges::find_if(catalog.entries, is_implied);
  if (implied != catalog.entries.end())
    all.push_back({{"anyOf", {{{"required", {"kind"}}}, {{"required", {implied->name}}}}}});
  else if (!catalog.entries.empty() && needs_kind)
    out["required"] = {"kind"};
  out["additionalProperties"] = false;
  if (!all.empty()) out["allOf"] = all;
  return out;
}

bool must_be_there(const Catalog& catalog) {
  if (catalog.repeated || catalog.may_be_absent()) return false;
  if (!catalog.entries.empty() && catalog.default_kind.empty()) return true;
  const auto required = [](const Key& key) { return key.required() && !key.refused(); };
  const auto needed = [](const Alternatives& alternatives) { return alternatives.required; };
  return std::ranges::any_of(catalog.keys_of(catalog.find_entry(catalog.default_kind)), required) ||
         std::ranges::any_of(catalog.alternatives, needed);
}

void add_definitions(Json& definitions, const Catalog& catalog) {
  const auto add_from = [&](const std::vector<Key>& keys) {
    for (const auto& key : keys)
      if (key.tables && !definitions.contains(definition_name(*key.tables)))
        definitions[definition_name(*key.tables)] = table_schema(*key.tables);
  };
  add_from(catalog.keys);
  for (const auto& entry : catalog.entries) add_from(entry.keys);
}

// The table that holds a section: the recipe, or "data" for "data.train".
Json& parent_of(Json& recipe, const std::string& section) {
  const std::size_t dot = section.find('.');
  if (dot == std::string::npos) return recipe;
  Json& table = recipe["properties"][section.substr(0, dot)];
  if (table.is_null())
    table = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  return table;
}

void add_section(Json& recipe, const Catalog& catalog) {
  Json table = table_schema(catalog);
  if (catalog.section.empty()) {
    for (auto& [name, schema] : table["properties"].items()) recipe["properties"][name] = schema;
    return;
  }
  const std::string& section = catalog.section;
  const std::size_t dot = section.find('.');
  Json& parent = parent_of(recipe, section);
  if (catalog.repeated) table = list_of(table);
  parent["properties"][section.substr(dot + 1)] = table;  // npos + 1 is 0
  if (!must_be_there(catalog)) return;
  parent["required"].push_back(section.substr(dot + 1));
  if (dot != std::string::npos) recipe["required"].push_back(section.substr(0, dot));
}

}  // namespace

std::string recipe_schema(std::span<const Catalog> catalogs) {
  Json recipe = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "A recipe of tutti"},
                 {"type", "object"},
                 {"properties", Json::object()},
                 {"required", Json::array()},
                 {"additionalProperties", false},
                 {"definitions", Json::object()}};
  for (const auto& catalog : catalogs) {
    add_definitions(recipe["definitions"], catalog);
    add_section(recipe, catalog);
  }
  return recipe.dump(1) + '\n';
}

}  // namespace tutti
