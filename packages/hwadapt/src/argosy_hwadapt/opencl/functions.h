/* What the plug-in calls of OpenCL. */
int setenv(const char *, const char *, int);
typedef void *handle; typedef int32_t status;
status clGetPlatformIDs(uint32_t, handle *, uint32_t *);
status clGetDeviceIDs(handle, uint64_t, uint32_t, handle *, uint32_t *);
status clGetDeviceInfo(handle, uint32_t, size_t, void *, size_t *),
       clGetProgramInfo(handle, uint32_t, size_t, void *, size_t *),
       clGetEventProfilingInfo(handle, uint32_t, size_t, void *, size_t *),
       clGetProgramBuildInfo(handle, handle, uint32_t, size_t, void *, size_t *);
handle clCreateContext(const intptr_t *, uint32_t, const handle *, void *, void *, status *);
handle clCreateCommandQueue(handle, handle, uint64_t, status *);
handle clCreateBuffer(handle, uint64_t, size_t, void *, status *);
status clFlush(handle), clFinish(handle), clReleaseMemObject(handle), clReleaseProgram(handle),
       clReleaseKernel(handle), clReleaseEvent(handle), clReleaseCommandQueue(handle);
typedef uint32_t number; typedef const handle *events;
status clEnqueueReadBuffer(handle, handle, uint32_t, size_t, size_t, void *, number, events, handle *);
status clEnqueueWriteBuffer(handle, handle, uint32_t, size_t, size_t, const void *, number, events, handle *);
status clEnqueueCopyBuffer(handle, handle, handle, size_t, size_t, size_t, number, events, handle *);
status clEnqueueNDRangeKernel(handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, number,
                              events, handle *);
status clEnqueueMarkerWithWaitList(handle, number, events, handle *);
status clWaitForEvents(number, events);
handle clCreateProgramWithSource(handle, uint32_t, const char **, const size_t *, status *);
handle clCreateProgramWithIL(handle, const void *, size_t, status *);
handle clCreateProgramWithBinary(handle, uint32_t, const handle *, const size_t *, const uint8_t **, status *,
                                 status *);
status clBuildProgram(handle, uint32_t, const handle *, const char *, void *, void *);
handle clCreateKernel(handle, const char *, status *);
status clSetKernelArg(handle, uint32_t, size_t, const void *);
