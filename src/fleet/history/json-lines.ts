import type * as z from 'zod';
import { parseJson } from '../../base/json.ts';

/** The lines of a text that are JSON of a type. Others are ignored: a crash may have truncated the last one. */
export function readJsonLines<T>(content: string, type: z.ZodType<T>): readonly T[] {
  return content.split('\n').flatMap((line) => {
    const read = type.safeParse(parseJson(line));
    return read.success ? [read.data] : [];
  });
}
