// Events with which hosts tell of work outside of PJRT that depends on a device: while a profiler listens, it sees when each began and ended.

#include "../trace.h"
#include "device.h"
#include "guard.h"

namespace trivium::pjrt {

struct AsyncTrackingEvent {
  trace::Span span;
};

namespace {

void Create(Device_CreateAsyncTrackingEvent_Args& args) {
  args.event = new AsyncTrackingEvent{trace::Span(View(args.description, args.description_size), args.device->description.text)};
}

void Destroy(AsyncTrackingEvent_Destroy_Args& args) { delete args.event; }

}  // namespace

void BindTrackingEvents(Api& api) {
  api.Device_CreateAsyncTrackingEvent = Method<Create>;
  api.AsyncTrackingEvent_Destroy = Slot<Destroy>;
}

}  // namespace trivium::pjrt
