#include "training/engine/callback.h"

#include <array>
#include <utility>

namespace tutti {
namespace {

using Handler = void (Callback::*)(State&, Logger&);

// In the order of Event.
constexpr std::array<Handler, kEvents> kHandlers = {&Callback::init,
                                                    &Callback::before_load,
                                                    &Callback::after_load,
                                                    &Callback::fit_start,
                                                    &Callback::iteration_start,
                                                    &Callback::epoch_start,
                                                    &Callback::before_dataloader,
                                                    &Callback::after_dataloader,
                                                    &Callback::batch_start,
                                                    &Callback::before_train_batch,
                                                    &Callback::before_forward,
                                                    &Callback::after_forward,
                                                    &Callback::before_loss,
                                                    &Callback::after_loss,
                                                    &Callback::before_backward,
                                                    &Callback::after_backward,
                                                    &Callback::after_train_batch,
                                                    &Callback::batch_end,
                                                    &Callback::batch_checkpoint,
                                                    &Callback::epoch_end,
                                                    &Callback::epoch_checkpoint,
                                                    &Callback::iteration_end,
                                                    &Callback::iteration_checkpoint,
                                                    &Callback::fit_end,
                                                    &Callback::eval_before_all,
                                                    &Callback::eval_start,
                                                    &Callback::eval_batch_start,
                                                    &Callback::eval_before_forward,
                                                    &Callback::eval_after_forward,
                                                    &Callback::eval_batch_end,
                                                    &Callback::eval_end,
                                                    &Callback::eval_after_all,
                                                    &Callback::eval_standalone_start,
                                                    &Callback::eval_standalone_end,
                                                    &Callback::predict_start,
                                                    &Callback::predict_batch_start,
                                                    &Callback::predict_before_forward,
                                                    &Callback::predict_after_forward,
                                                    &Callback::predict_batch_end,
                                                    &Callback::predict_end};

}  // namespace

void Callback::run_event(Event event, State& state, Logger& logger) {
  const auto index = static_cast<std::size_t>(event);
  const bool outer = std::exchange(acts_, true);  // the function of an event may run others
  (this->*kHandlers[index])(state, logger);
  if (!acts_) ignored_.set(index);
  acts_ = outer;
}

}  // namespace tutti
