#pragma once

#include <string>

#include "data/chats/jinja_value.h"

namespace tutti::jinja {

// Each function throws UserError for an unknown name, and for values without meaning there.
Value call_function(const Call& call);
Value call_filter(const Call& call);
Value call_method(const Call& call);
bool call_test(const Call& call);
bool is_function(const std::string& name);

// Throws UserError if lists and maps lie too deep in each other: their readers and destructors are recursive.
void require_shallow(const Value& value, Work& work, int depth = 0);

// The operator `in`: true if the container has the value.
bool contains(const Value& container, const Value& value);

// A part of a text or list by Python's indices; none: the beginning or end.
Value slice(const Value& value, const Value& from, const Value& to, const Value& step);
// value[index]; undefined where there is none.
Value item(const Value& value, const Value& index);

// The items of a loop: elements, a map's keys, a text's characters. Throws UserError for other values.
List elements(const Value& value);

}  // namespace tutti::jinja
