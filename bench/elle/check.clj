;; Elle's verdict on one history and its processor time, for bench/elle_peer.py.
;;
;; Arguments: the namespace of the checker, its options as an EDN map, the file of the history with
;; one operation a line, and the number of runs; without any, Elle is loaded and that is all. Prints
;; one JSON object. Processor time is that of the whole process: its threads, its compiler and its
;; collector of garbage, which is let do its work before each measurement. All runs have the same
;; history in memory; the first one pairs its invocations with their completions.
(require '[clojure.edn :as edn]
         '[clojure.java.io :as io]
         '[clojure.string :as string])
(import '(com.sun.management OperatingSystemMXBean)
        '(java.lang.management ManagementFactory))

(defn cpu-ns []
  (.getProcessCpuTime ^OperatingSystemMXBean (ManagementFactory/getOperatingSystemMXBean)))

(defn measured
  "Returns the result of a function, and the CPU seconds that it took."
  [f]
  (System/gc)
  (let [before (cpu-ns)
        result (f)]
    [result (/ (- (cpu-ns) before) 1e9)]))

(defn fail
  "Ends the process with the innermost cause."
  [^Throwable thrown]
  (if-let [cause (.getCause thrown)]
    (recur cause)
    (do (println (str "{\"error\": " (pr-str (or (.getMessage thrown) (str thrown))) "}"))
        (flush)
        (System/exit 1))))

(defn read-history
  "Returns the history of a file; its operations have the indices 0, 1 and so on."
  [path]
  (let [history (requiring-resolve 'jepsen.history/history)]
    (with-open [reader (io/reader path)]
      (history (mapv edn/read-string (line-seq reader)) {:dense-indices? true}))))

(defn check
  "Returns the verdict, the anomalies, and the CPU seconds of each run."
  [checker options history runs]
  (loop [times []]
    (let [[result seconds] (measured #(checker options history))
          times (conj times seconds)]
      (if (< (count times) runs)
        (recur times)
        [({true "valid" false "invalid"} (:valid? result) "unknown")
         (map name (:anomaly-types result))
         times]))))

(defn tell
  "Prints one JSON object about a history."
  [checker options path runs]
  (let [[history reading] (measured #(read-history path))
        [verdict anomalies times] (check checker options history runs)]
    (println (format "{\"verdict\": %s, \"anomalies\": [%s], \"reading_cpu_s\": %s, \"runs_cpu_s\": [%s]}"
                     (pr-str verdict)
                     (string/join ", " (map pr-str anomalies))
                     reading
                     (string/join ", " times)))
    (flush)))

(try
  (require 'jepsen.history 'elle.list-append 'elle.rw-register)
  (when-let [[namespace options path runs] *command-line-args*]
    (tell (requiring-resolve (symbol namespace "check"))
          (edn/read-string options)
          path
          (parse-long runs)))
  (catch Throwable thrown
    (fail thrown)))
(System/exit 0)
