import type { IncomingMessage } from 'node:http';

/**
 * Reads the text of a response.
 * @param tooLarge throws, or ends the response, when the text exceeds `maxBytes`
 */
export async function readBody(response: IncomingMessage, maxBytes: number, tooLarge: () => void): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
