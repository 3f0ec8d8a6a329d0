#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/chats/jinja_value.h"

namespace tutti::jinja {

enum class Op {
  // Statements. kFor: the list, a condition, the body, the body for an empty list. kIf: conditions and bodies
  // in turn, and perhaps a last body. kSet: a value, or with kSetBlock a body. kMacro: the body, defaults.
  kBlock,
  kText,
  kOutput,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kGeneration,
  kBreak,
  kContinue,
  // Expressions. kMethod, kFilter, kTest: the subject, and the arguments.
  kConstant,
  kName,
  kList,
  kMap,
  kMember,
  kItem,
  kSlice,
  kCall,
  kMethod,
  kFilter,
  kTest,
  kNot,
  kNegative,
  kBinary,
  kCondition
};

// A statement or an expression.
struct Node {
  Op op = Op::kBlock;
  int line = 0;
  std::string name = "";                // of a variable, member, operator, filter, ...
  Value value = {};                     // of kConstant, kText
  std::vector<Node> parts = {};         // in the order above
  std::vector<std::string> names = {};  // kFor: the variables; kMacro: the parameters; of the arguments: ""
                                        // or their keywords; kSet: the variable, and the member if any
};

// The template with transformers' settings: trim_blocks and lstrip_blocks of jinja2, `break` and `continue`,
// and the tag `generation`. Throws UserError with the line and the unknown construct.
Node parse_template(std::string_view text);

[[noreturn]] void fail_at(int line, const std::string& what);

}  // namespace tutti::jinja
