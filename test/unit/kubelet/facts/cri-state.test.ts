import { describe, expect, it } from 'vitest';
import { observe } from '../../../../src/host/access/observe.ts';
import { criState } from '../../../../src/kubelet/facts/cri-socket.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const seen = (stdout: string, exitCode = 0) =>
  observe(fakeHost({ commands: { sh: { stdout, exitCode } } }), criState('unix:///run/containerd/containerd.sock'));

describe('criState', () => {
  it.each([
    ['HTTP/2 200 \r\ncontent-type: application/grpc\r\n\r\ngrpc-status: 0\r\ngrpc-message: \r\ncurl-exit: 0\n', { kind: 'served' }],
    ['HTTP/2 200 \r\ngrpc-status: 12\r\ngrpc-message: unknown service runtime.v1.RuntimeService\r\n\r\ncurl-exit: 0\n', { kind: 'no-cri' }],
    [
      'HTTP/2 200 \r\ngrpc-status: 2\r\ngrpc-message: server is not initialized yet\r\ncurl-exit: 0\n',
      { kind: 'failing', message: 'server is not initialized yet' },
    ],
    ["curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server\ncurl-exit: 7\n", { kind: 'not-listening' }],
    ['curl: (28) Operation timed out after 5000 milliseconds with 0 bytes received\ncurl-exit: 28\n', { kind: 'mute' }],
    ['curl: (1) Unsupported protocol\ncurl-exit: 1\nRuntimeName:  containerd\ngrpc-status: 0\n', { kind: 'served' }],
    [
      'level=fatal msg="validate CRI v1 runtime API: rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"\n',
      { kind: 'no-cri' },
    ],
    ['level=fatal msg="dial unix /run/containerd/containerd.sock: connect: connection refused"\n', { kind: 'not-listening' }],
    ['level=fatal msg="code = DeadlineExceeded desc = context deadline exceeded"\n', { kind: 'mute' }],
    ['curl: (16) Error in the HTTP2 framing layer\ncurl-exit: 16\n', null],
    ['', null],
  ])('%j', async (stdout, expected) => {
    expect(await seen(stdout)).toEqual(expected);
  });

  it('is unknown without a socket', async () => {
    expect(await seen('', 3)).toBeNull();
  });
});
