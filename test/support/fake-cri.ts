import { createServer } from 'node:http2';

/** A message with string fields 1 to n (protobuf, the lengths below 128). */
function messageOf(texts: readonly string[]): Buffer {
  return Buffer.concat(texts.flatMap((text, i) => [Buffer.from([((i + 1) << 3) | 2, text.length]), Buffer.from(text)]));
}

/** The responses with which a kubelet 1.36 starts its server; the container manager waits for a ready runtime. */
const ANSWERS: Readonly<Record<string, Buffer>> = {
  Version: messageOf(['0.1.0', 'fake', '1.0.0', 'v1']),
  ImageFsInfo: Buffer.alloc(0),
  Status: Buffer.alloc(0),
};
const UNIMPLEMENTED = '12';

/** A container runtime without containers at a Unix socket: gRPC over HTTP/2, by the last word of the path. */
export async function startFakeCri(socket: string): Promise<{ close(): void }> {
  const server = createServer();
  server.on('stream', (stream, { ':path': path = '' }) => {
    const answer = ANSWERS[path.slice(path.lastIndexOf('/') + 1)];
    stream.resume();
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': answer === undefined ? UNIMPLEMENTED : '0' }));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(answer?.length ?? 0, 1);
    stream.end(answer === undefined ? undefined : Buffer.concat([head, answer]));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return { close: () => void server.close() };
}
