// A fake HIP driver on the host: the fake CUDA driver under HIP's names. Only how a thread selects its device, and how a
// device describes itself, are different.
#define FAKE_HIP
#define cuGetErrorName hipDrvGetErrorName
#define cuGetErrorString hipDrvGetErrorString
#define cuInit hipInit
#define cuDriverGetVersion hipDriverGetVersion
#define cuDeviceGetCount hipGetDeviceCount
#define cuDeviceGet hipDeviceGet
#define cuDeviceGetName hipDeviceGetName
#define cuDeviceGetAttribute hipDeviceGetAttribute
#define cuDeviceCanAccessPeer hipDeviceCanAccessPeer
#define cuDeviceTotalMem_v2 hipDeviceTotalMem
#define cuStreamCreate hipStreamCreateWithFlags
#define cuStreamDestroy_v2 hipStreamDestroy
#define cuStreamSynchronize hipStreamSynchronize
#define cuStreamWaitEvent hipStreamWaitEvent
#define cuStreamBeginCapture_v2 hipStreamBeginCapture
#define cuStreamEndCapture hipStreamEndCapture
#define cuEventCreate hipEventCreateWithFlags
#define cuEventDestroy_v2 hipEventDestroy
#define cuEventRecord hipEventRecord
#define cuEventQuery hipEventQuery
#define cuEventSynchronize hipEventSynchronize
#define cuMemPoolCreate hipMemPoolCreate
#define cuMemPoolDestroy hipMemPoolDestroy
#define cuMemPoolSetAttribute hipMemPoolSetAttribute
#define cuMemPoolGetAttribute hipMemPoolGetAttribute
#define cuMemPoolTrimTo hipMemPoolTrimTo
#define cuMemPoolSetAccess hipMemPoolSetAccess
#define cuMemAllocFromPoolAsync hipMallocFromPoolAsync
#define cuMemFreeAsync hipFreeAsync
#define cuMemGetInfo_v2 hipMemGetInfo
#define cuMemHostAlloc hipHostMalloc
#define cuMemFreeHost hipHostFree
#define cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuMemcpyDtoDAsync_v2 hipMemcpyDtoDAsync
#define cuMemcpyPeerAsync hipMemcpyPeerAsync
#define cuModuleUnload hipModuleUnload
#define cuModuleGetFunction hipModuleGetFunction
#define cuLaunchKernel hipModuleLaunchKernel
#define cuGraphInstantiateWithFlags hipGraphInstantiateWithFlags
#define cuGraphLaunch hipGraphLaunch
#define cuGraphDestroy hipGraphDestroy
#define cuGraphExecDestroy hipGraphExecDestroy

#include "fake_cuda.cc"

namespace {

// hipDeviceProp_tR0600, in which only one field is used.
struct Properties { char first[1160]; char architecture[256]; char last[56]; };

}  // namespace

extern "C" {

int hipGetDevice(int *device) { BEGIN(false); *device = chosen; return kSuccess; }
int hipSetDevice(int device) {
  GIVE_BACK(false);
  REQUIRE((device >= 0 && device < kDevices) || device == kOthers, kInvalidDevice);
  if (!failed || device == kOthers) chosen = device;
  return failed;
}
int hipGetDevicePropertiesR0600(Properties *properties, int device) {
  BEGIN(false);
  memset(properties, 0, sizeof *properties);
  strcpy(properties->architecture, device ? "gfx906:sramecc+:xnack-" : ARCHITECTURE ":sramecc+:xnack-");
  return kSuccess;
}
int hipModuleLoadData(void **module, const char *image) { BEGIN(true); return load(module, image); }

}  // extern "C"
