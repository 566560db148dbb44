import { isJsonObject, type JsonObject } from '../base/json.ts';

export interface RawWatchEvent {
  readonly type: string;
  readonly object: JsonObject;
}

/** One JSON object per line. @throws Error on an invalid or longer line */
export function createWatchLines(maxLineLength = 16 * 1024 * 1024) {
  const decoder = new TextDecoder('utf-8');
  let pending: string[] = [];
  let pendingLength = 0;
  return {
    /** The events completed by this chunk. A chunk may split a line anywhere, even inside a character. */
    push: (chunk: Uint8Array): readonly RawWatchEvent[] => {
      const lines = decoder.decode(chunk, { stream: true }).split('\n');
      const rest = lines.pop() ?? '';
      const [first, ...others] = lines;
      const complete = first === undefined ? [] : [`${pending.join('')}${first}`, ...others];
      if (first !== undefined) {
        pending = [];
        pendingLength = 0;
      }
      pending.push(rest);
      pendingLength += rest.length;
      if (pendingLength > maxLineLength) throw new Error(`a line of the watch has more than ${maxLineLength} characters`);
      return complete.filter((line) => line.trim() !== '').map(parseEvent);
    },
  };
}

function parseEvent(line: string): RawWatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw new Error('a line of the watch is not JSON');
  }
  if (!isJsonObject(event) || typeof event.type !== 'string' || !isJsonObject(event.object)) {
    throw new Error('a line of the watch is not a valid event');
  }
  return { type: event.type, object: event.object };
}
