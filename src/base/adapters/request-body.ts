import type { IncomingMessage } from 'node:http';

/**
 * Reads the text of a request to its end, so that the client gets an answer also if it is too large.
 * @returns null: more than `mostBytes`
 */
export async function readRequestBody(request: IncomingMessage, mostBytes: number): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= mostBytes) chunks.push(chunk);
  }
  return bytes > mostBytes ? null : Buffer.concat(chunks).toString('utf8');
}
