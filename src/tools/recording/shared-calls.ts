// Concurrent equal calls become one: whoever asks while it is under way waits for the same answer.

export interface SharedCalls<T> {
  /** `joined` says that an equal call was under way. The call itself is aborted once nobody waits for it any more. */
  run(key: string, call: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<{ value: T; joined: boolean }>;
}

interface Flight<T> {
  readonly answer: Promise<T>;
  readonly abort: AbortController;
  waiting: number;
}

export function createSharedCalls<T>(): SharedCalls<T> {
  const flights = new Map<string, Flight<T>>();
  return {
    async run(key, call, signal) {
      signal?.throwIfAborted();
      const present = flights.get(key);
      const flight = present ?? takeOff(flights, key, call);
      flight.waiting++;
      try {
        return { value: await orAborted(flight.answer, signal), joined: present !== undefined };
      } finally {
        flight.waiting--;
        if (flight.waiting === 0) {
          // A later caller must not join a call that is being aborted.
          if (flights.get(key) === flight) flights.delete(key);
          flight.abort.abort();
        }
      }
    },
  };
}

function takeOff<T>(flights: Map<string, Flight<T>>, key: string, call: (signal: AbortSignal) => Promise<T>): Flight<T> {
  const abort = new AbortController();
  const answer = call(abort.signal);
  // Those who wait see the error; when all have left, nobody has to.
  answer.catch(() => undefined);
  const flight = { answer, abort, waiting: 0 };
  flights.set(key, flight);
  return flight;
}

function orAborted<T>(answer: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return answer;
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
